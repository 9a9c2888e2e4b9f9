package config

import (
	"path/filepath"
	"strings"
)

// ZeroShot names what zero-shot classification of stored features is evaluated on: images with
// their classes, and texts that name the classes. Paths start from data.root.
type ZeroShot struct {
	Image       string `toml:"image"`        // file of image features, .npy or .safetensors, of the encoder that the training images are from; empty: no zero-shot classification
	ImageTensor string `toml:"image_tensor"` // name of the tensor in a .safetensors file of image features; empty: its only one
	ImageLabels string `toml:"image_labels"` // text file with the name of the class of each image, one a line
	Text        string `toml:"text"`         // file of the features of prompts such as "a photo of a dog", .npy or .safetensors, of the encoder of the training texts; prompts of one class are averaged in the shared space
	TextTensor  string `toml:"text_tensor"`  // name of the tensor in a .safetensors file of prompts; empty: its only one
	TextLabels  string `toml:"text_labels"`  // text file with the name of the class of each prompt, one a line
}

func (z *ZeroShot) defaults() {}

func (z *ZeroShot) check(k *checker, c *Config) {
	const key = "eval.zeroshot."
	if z.Image == "" {
		return
	}
	k.require(key+"image", c.Model.Stored(), "must be empty", c.Model.named()+" reads images, and zero-shot classification stored features")
	for _, file := range []struct{ name, path string }{{"image", z.Image}, {"text", z.Text}} {
		ext := strings.ToLower(filepath.Ext(file.path))
		k.require(key+file.name, file.path != "", "must name a file of features", "eval.zeroshot.image asks for classification by texts")
		k.require(key+file.name, ext == ".npy" || ext == ".safetensors", "must end in .npy or .safetensors")
		tensor := k.fields[key+file.name+"_tensor"].String()
		k.require(key+file.name+"_tensor", tensor == "" || ext != ".npy", "must be empty for a .npy file", "which holds one array")
	}
	for _, name := range []string{"image_labels", "text_labels"} {
		k.require(key+name, k.fields[key+name].String() != "", "must name a text file with a class on each line")
	}
}
