package weights

// openCLIPTimm is a dual encoder of open_clip whose image tower is a vision transformer of timm, such as its SigLIP.
var openCLIPTimm = family{
	name:  "open_clip_timm",
	types: []string{"open_clip"},
	below: "visual.trunk.blocks.",
	parts: []part{
		timmVision("visual.trunk."),
		{
			prefixes: []string{"visual.head.proj.", "visual.trunk.head."},
			marks:    []string{"weight"},
			needs:    []rule{{"image_proj/weight", "weight", nil}},
			may:      []rule{{"image_proj/bias", "bias", nil}},
		},
		openCLIPText, logitScale, logitBias(scalar),
	},
	unneeded: openCLIPUnneeded,
	describe: func(d *description) error {
		var said openCLIPVision
		pool := ""
		if d.openCLIP != nil {
			if said, pool = d.openCLIP.Model.Vision, "avg"; said.TimmPool != nil {
				pool = *said.TimmPool
			}
		}
		o, unlike, err := d.timmFacts("visual.trunk.", said.Timm, pool)
		if err != nil {
			return err
		}
		if unlike != "" {
			d.differs("%s", unlike)
		}
		if _, mlp := d.file.Lookup("visual.head.mlp.fc1.weight"); mlp {
			d.differs("images are projected by an MLP (visual.head.mlp), and by one linear layer in a dual encoder here")
		}
		// the size of images is that of the tower, and open_clip's statistics are CLIP's where it says none
		if d.openCLIP != nil {
			o.preprocess = preprocess{clipMean, clipStd, resizeCrop, "bicubic", 0}
		}
		return d.openCLIPTowers(o)
	},
}
