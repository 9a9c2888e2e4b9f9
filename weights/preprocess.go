package weights

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// preprocess is how an image is made an input: squashed to a square, or its shortest side scaled, and a square
// cut from the middle, then (v - mean) / std of each channel of values in [0, 1].
type preprocess struct {
	mean, std             [3]float64
	resize, interpolation string
	crop                  float64 // side of what is cut by the side that the image is scaled to; 0: 1
}

const (
	resizeSquash = "squash"
	resizeCrop   = "crop"
)

// Means and deviations of the channels that families were trained with.
var (
	half         = [3]float64{0.5, 0.5, 0.5}
	imageNetMean = [3]float64{0.485, 0.456, 0.406}
	imageNetStd  = [3]float64{0.229, 0.224, 0.225}
	clipMean     = [3]float64{0.48145466, 0.4578275, 0.40821073}
	clipStd      = [3]float64{0.26862954, 0.26130258, 0.27577711}
)

// processor is what is read of a preprocessor_config.json of Hugging Face, or of the image processor in a
// processor_config.json.
type processor struct {
	file string // that it is of

	Mean       []float64 `json:"image_mean"`
	Std        []float64 `json:"image_std"`
	Size       sides     `json:"size"`
	Crop       sides     `json:"crop_size"`
	CenterCrop bool      `json:"do_center_crop"`
	Type       string    `json:"image_processor_type"`
	OldType    string    `json:"feature_extractor_type"` // as older files call it
	Normalize  *bool     `json:"do_normalize"`
	Resample   *int      `json:"resample"`
	CropPart   float64   `json:"crop_pct"` // of processors that cut the centre of what they scale
	Resize     *bool     `json:"do_resize"`
	Rescale    *bool     `json:"do_rescale"`
	Pad        bool      `json:"do_pad"`
	Factor     *float64  `json:"rescale_factor"` // of values from 0 to 255
}

// openCLIPPrepare is what is read of preprocess_cfg in an open_clip_config.json.
type openCLIPPrepare struct {
	Mean          []float64 `json:"mean"`
	Std           []float64 `json:"std"`
	Size          sides     `json:"size"`
	Interpolation string    `json:"interpolation"`
	ResizeMode    string    `json:"resize_mode"`
}

// timmPrepare is what is read of pretrained_cfg in a config.json of timm.
type timmPrepare struct {
	Mean          []float64 `json:"mean"`
	Std           []float64 `json:"std"`
	Interpolation string    `json:"interpolation"`
	CropPart      float64   `json:"crop_pct"`
	CropMode      string    `json:"crop_mode"`
	// channels, height and width, of the architecture, whatever the positions are stored for
	Shape []int `json:"input_size"`
}

// prepared returns how images are prepared by what the files say, and else by p, and the side of the images,
// 0 where nothing says it. Of files of several programs that of the weights' own goes first.
func (d *description) prepared(p preprocess) (_ preprocess, side int, err error) {
	own := func(kind string) bool { return slices.Contains(d.types, kind) }
	switch {
	case own("timm") && d.config.Pretrained != nil:
		err = d.config.Pretrained.over(d, &p)
	case d.processor != nil && !(own("open_clip") && d.openCLIP != nil):
		side, err = d.processor.over(d, &p)
	case d.openCLIP != nil:
		side, err = d.openCLIP.Prepare.over(d, &p, d.openCLIP.Model.Vision.ImageSize)
	case d.config.Pretrained != nil:
		err = d.config.Pretrained.over(d, &p)
	}
	return p, side, err
}

func (x *processor) over(d *description, p *preprocess) (side int, err error) {
	file := x.file
	if err := channels(file+": image_mean", x.Mean, &p.mean, false); err != nil {
		return 0, err
	}
	if err := channels(file+": image_std", x.Std, &p.std, true); err != nil {
		return 0, err
	}
	if x.Normalize != nil && !*x.Normalize {
		p.mean, p.std = [3]float64{}, [3]float64{1, 1, 1}
	}
	if x.Resize != nil && !*x.Resize {
		d.note("%s has do_resize = false, and images of other sizes are scaled here all the same", file)
	}
	if x.Pad {
		d.note("%s has do_pad = true, and no image gets a border here", file)
	}
	switch {
	case x.Rescale != nil && !*x.Rescale:
		d.note("%s has do_rescale = false, and values from 0 to 255 are divided by 255 here before mean and deviation",
			file)
	case x.Factor != nil && !(math.Abs(*x.Factor*255-1) <= 1e-3):
		d.note("%s has rescale_factor = %g, and values from 0 to 255 are divided by 255 here", file, *x.Factor)
	}
	size := x.Size
	if x.class() != "" && !x.convNeXt() { // other classes cut by crop_size alone
		p.crop = 0
	}
	switch {
	case x.warps():
		p.resize, p.crop = resizeSquash, 0
	case x.shortest():
		p.resize = resizeCrop
	case x.Size != (sides{}):
		p.resize = resizeSquash
	}
	if x.CropPart < 0 || x.CropPart > 1 {
		return 0, fmt.Errorf("%s: crop_pct is %g, want a share above 0 and at most 1", file, x.CropPart)
	}
	if x.CropPart > 0 && !x.warps() {
		p.crop = x.CropPart
	}
	if x.CenterCrop {
		size = x.Crop
		switch {
		case x.Size.height != x.Size.width:
			return 0, fmt.Errorf("%s: images are scaled to %d x %d, and only squares are read", file, x.Size.height,
				x.Size.width)
		case x.Size.height > 0 && x.Size.height < x.Crop.height:
			return 0, fmt.Errorf("%s: images are scaled to %d and bordered to %d (size, crop_size), and none are bordered here: make both the same", file, x.Size.height, x.Crop.height)
		case x.Size.height > x.Crop.height && x.Crop.height > 0:
			p.crop = float64(x.Crop.height) / float64(x.Size.height)
		}
	}
	d.down = p.resize == resizeCrop
	if x.Resample != nil {
		names := map[int]string{2: "bilinear", 3: "bicubic"}
		if name := names[*x.Resample]; name != "" {
			p.interpolation = name
		} else {
			d.note("%s has resample %d, and 2 (bilinear) and 3 (bicubic) are known: %s is taken", file, *x.Resample,
				p.interpolation)
		}
	}
	return size.square(file)
}

// shortest says whether size is that of the shortest side of an image, whose ratio stays. A number alone is what the
// processor's class takes it for.
func (x *processor) shortest() bool {
	switch {
	case x.Size.shortest:
		return true
	case !x.Size.number || !x.CenterCrop && !x.convNeXt():
		return false
	}
	return !strings.HasPrefix(x.class(), "ViT") && !strings.HasPrefix(x.class(), "DeiT")
}

// class names the processor's class, empty where the file does not.
func (x *processor) class() string { return x.Type + x.OldType }

// convNeXt says whether the class is that of ConvNeXt, which residual networks have.
func (x *processor) convNeXt() bool { return strings.HasPrefix(x.class(), "ConvNext") }

// warps says whether images are squashed, whatever crop_pct says: that class does so from 384 pixels on.
func (x *processor) warps() bool { return x.convNeXt() && x.Size.height >= 384 }

// over takes the size of the image tower, where the file says it, before that of the preparation, as open_clip does.
func (x *openCLIPPrepare) over(d *description, p *preprocess, tower sides) (side int, err error) {
	const file = "open_clip_config.json: preprocess_cfg"
	if err := channels(file+".mean", x.Mean, &p.mean, false); err != nil {
		return 0, err
	}
	if err := channels(file+".std", x.Std, &p.std, true); err != nil {
		return 0, err
	}
	d.interpolation(file, x.Interpolation, p)
	switch x.ResizeMode {
	case "", "shortest":
	case "squash":
		p.resize = resizeSquash
	default:
		d.note("%s.resize_mode is %q, and shortest and squash are known: %s is taken", file, x.ResizeMode, p.resize)
	}
	if tower != (sides{}) {
		return tower.square("open_clip_config.json: vision_cfg.image_size")
	}
	return x.Size.square(file)
}

// over takes what timm's PretrainedCfg has where the file leaves a key out.
func (x *timmPrepare) over(d *description, p *preprocess) error {
	const file = "config.json: pretrained_cfg"
	*p = preprocess{imageNetMean, imageNetStd, resizeCrop, "bicubic", 0.875}
	if err := channels(file+".mean", x.Mean, &p.mean, false); err != nil {
		return err
	}
	if err := channels(file+".std", x.Std, &p.std, true); err != nil {
		return err
	}
	d.interpolation(file, x.Interpolation, p)
	switch x.CropMode {
	case "", "center":
	case "squash":
		p.resize = resizeSquash
	default:
		d.note("%s.crop_mode is %q, and center and squash are known: %s is taken", file, x.CropMode, p.resize)
	}
	if len(x.Shape) == 3 {
		if _, err := (sides{height: x.Shape[1], width: x.Shape[2]}).square(file + ".input_size"); err != nil {
			return err
		}
	}
	if _, err := d.config.Args.ImageSize.square("config.json: model_args.img_size"); err != nil {
		return err
	}
	if x.CropPart < 0 || x.CropPart > 1 {
		return fmt.Errorf("%s.crop_pct is %g, want a share above 0 and at most 1", file, x.CropPart)
	}
	p.crop = cmp.Or(x.CropPart, p.crop)
	return nil
}

// interpolation takes the name of one, if it is known.
func (d *description) interpolation(file, name string, p *preprocess) {
	switch name {
	case "":
	case "bilinear", "bicubic":
		p.interpolation = name
	default:
		d.note("%s.interpolation is %q, and bilinear and bicubic are known: %s is taken", file, name, p.interpolation)
	}
}

// channels takes the numbers of the three channels, if there are any.
func channels(key string, list []float64, into *[3]float64, positive bool) error {
	if list == nil {
		return nil
	}
	if len(list) != 3 {
		return fmt.Errorf("%s has %d numbers, want 3", key, len(list))
	}
	for i, x := range list {
		if !(x >= 0 && x <= 1) || positive && x <= 0 {
			return fmt.Errorf("%s has the number %g, which cannot be that of values in [0, 1]", key, x)
		}
		into[i] = x
	}
	return nil
}
