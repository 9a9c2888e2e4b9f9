package weights

import "fmt"

// albef is checkpoints of ALBEF (Li et al. 2021), of pre-training and of retrieval. Momentum twins have momentum/
// before the names of their parameters, and the queues are queue/image and queue/text, (Q, C).
var albef = family{
	name:  "albef",
	types: []string{"albef"},
	parts: []part{
		timmVision("visual_encoder."),
		bertText("text_encoder.bert.", "text_encoder."),
		bertMLM("text_encoder."),
		twin(timmVision("visual_encoder_m.")),
		twin(bertText("text_encoder_m.bert.", "text_encoder_m.")),
		twin(bertMLM("text_encoder_m.")),
		{
			prefixes: []string{""},
			marks:    []string{"vision_proj.weight", "text_proj.weight"},
			needs:    []rule{{"image_proj/*", "vision_proj.*", nil}, {"text_proj/*", "text_proj.*", nil}},
			may: []rule{
				{"itm_head/*", "itm_head.*", nil},
				{"temperature", "temp", scalar},
				{"momentum/image_proj/*", "vision_proj_m.*", nil},
				{"momentum/text_proj/*", "text_proj_m.*", nil},
				{"queue/image", "image_queue", transposed},
				{"queue/text", "text_queue", transposed},
			},
		},
	},
	unneeded: []string{"idx_queue", "queue_ptr"},
	describe: func(d *description) error {
		if !d.has("image/cls_token") || !d.has("text/embeddings/norm/weight") {
			return fmt.Errorf("it lacks the image or the text tower")
		}
		d.set("model.system", "albef")
		if err := d.image(imageFacts{style: "vit", activation: "gelu", pool: "class", eps: 1e-6}); err != nil {
			return err
		}
		if err := d.text(textFacts{style: "bert", activation: "gelu", pool: "class", eps: 1e-12}); err != nil {
			return err
		}
		if err := d.head(); err != nil {
			return err
		}
		if v, ok := d.values["queue/image"]; ok {
			d.set("queue.size", v.shape[0])
		}
		return nil
	},
}

// twin is the momentum twin of a part.
func twin(p part) part {
	p.ours = "momentum/"
	return p
}
