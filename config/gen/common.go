package main

import (
	"fmt"
)

// usual are the keys that most runs set, in short words.
var usual = []struct{ path, meaning string }{
	{"data.kind", "what the data is: scenes, captions, csv, karpathy, coco, webdataset, parquet, pairs, regions, ..."},
	{"data.root", "folder that relative paths start from"},
	{"data.tokens", "length of a text in tokens; longer ones are truncated"},
	{"data.clean", "how captions are cleaned: albef, none, whitespace, lower, canonicalize"},
	{"data.vocab", "tokenizer file or folder; empty: learned from the training captions"},
	{"data.cache", "where decoded training images are kept: none, memory, disk"},
	{"data.crop_scale_min", "smallest area of a random crop; 1: no crop"},
	{"data.flip", "random horizontal flips"},
	{"data.randaugment_ops", "RandAugment operations per image; 0: none"},
	{"model.system", "what is trained: albef, clip, matching, moco, swav, simcse, heads, align, ..."},
	{"model.image.style", "kind of image tower: vit, clip, dinov2, siglip, resnet, regions, ..."},
	{"model.image.size", "side of the input image in pixels"},
	{"model.image.freeze", "the image tower is not trained; likewise model.text.freeze"},
	{"model.text.style", "kind of text tower: bert, roberta, clip, siglip, gru, ..."},
	{"model.head.dim", "width of the shared space"},
	{"model.head.topology", "shape of the shared space: sphere, Ob(n,m), Multi(n,m), euclid"},
	{"model.lora.rank", "rank of LoRA adapters; 0: none"},
	{"init.checkpoint", "run whose parameters are the start"},
	{"init.image.path", "stored weights to start the image tower from; likewise init.text.path"},
	{"objective.itc.weight", "contrast against momentum features and the queue"},
	{"objective.itc.in_batch_weight", "contrast within the batch"},
	{"objective.itc.temperature", "temperature at the start; scores are divided by it"},
	{"objective.itc.score", "how an image and a text are compared: cosine, inner, l2, angle, gssf, geodesic"},
	{"objective.itc.positives", "pair: only the own pair; id: all pairs with the same image id"},
	{"objective.itm.weight", "image-text matching"},
	{"objective.mlm.weight", "masked language modelling"},
	{"objective.distill.alpha", "weight of the teacher's soft targets"},
	{"queue.size", "past features per modality that serve as negatives"},
	{"momentum.m", "momentum of the teacher's parameters"},
	{"train.batch_size", "pairs per step"},
	{"train.max_steps", "length of the run in steps; or train.max_epochs, max_samples, max_minutes"},
	{"train.accumulate_steps", "micro-batches per update"},
	{"train.eval_every_steps", "steps between evaluations; 0: only at the end"},
	{"train.save_every_steps", "steps between checkpoints"},
	{"optimizer.lr", "learning rate after warm-up"},
	{"optimizer.decay", "weight decay"},
	{"schedule.warmup_steps", "steps until the learning rate is reached; or warmup_percent"},
	{"compute.precision", "fp32, or bf16 for faster matrix products on processors and GPUs that have it"},
	{"compute.device", "cpu or cuda"},
	{"eval.split", "split that is evaluated: val or test"},
	{"eval.rerank_top", "candidates that the matching head re-ranks"},
	{"run.seed", "seed of every random number"},
}

// common writes a table of the usual keys.
func (r *renderer) common() error {
	r.WriteString("\n## Common keys\n\nMost runs set only some of these. All keys follow, by section.\n\n" +
		"| key | default | meaning |\n|---|---|---|\n")
	for _, u := range usual {
		value, ok := r.defaults.Get(u.path)
		if !ok {
			return fmt.Errorf("there is no key %s", u.path)
		}
		fmt.Fprintf(r, "| `%s` | `%s` | %s |\n", u.path, literal(value), escape.Replace(u.meaning))
	}
	return nil
}
