package run

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/geoalign/geoalign/config"
	"github.com/geoalign/geoalign/config/section"
	"github.com/geoalign/geoalign/internal/check"
	"github.com/geoalign/geoalign/internal/filetest"
	"github.com/geoalign/geoalign/internal/safetensors"
	"github.com/geoalign/geoalign/tasks/probe"
	"github.com/geoalign/geoalign/tasks/retrieval"
	"github.com/geoalign/geoalign/tasks/zeroshot"
	"github.com/geoalign/geoalign/train"
)

// dual switches what only fusion layers serve off.
var dual = []string{"model.text.fusion_layers=0", "objective.itm.weight=0", "objective.mlm.weight=0", "eval.rerank_top=0"}

// keysRuns are configurations over testdata/keys.toml in which every part is on somewhere
// and off somewhere.
func keysRuns(features string) map[string][]string {
	cosine := []string{"objective.itc.scores=[]", "objective.siglip.weight=0", "objective.geometric.weight=0", "objective.tcl.intra=false", "objective.tcl.local=false"}
	untaught := []string{"momentum.enabled=false", "queue.size=0", "objective.distill.alpha=0", "objective.itc.weight=0", "data.views=1"}
	views := slices.Concat(dual, cosine, []string{"objective.distill.alpha=0", "objective.itc.positives=pair", "model.head.topology=sphere", "objective.itc.in_batch_weight=0"})
	heads := slices.Concat(dual, cosine, []string{"model.system=heads", "data.kind=pairs", "data.root=" + features, "data.pairs.image=image.safetensors", "data.pairs.text=text.safetensors",
		"data.pairs.val_samples=21", "data.pairs.test_samples=20", "data.views=1", "model.heads.hidden=12", "model.heads.layers=2", "model.head.topology=sphere"})
	aligned := slices.Concat(heads, []string{"model.system=align", "eval.rerank_top=0"})
	regions := []string{"model.system=matching", "data.kind=regions", "data.regions.source=scenes", "model.image.style=regions", "model.head.topology=sphere"}
	resnet := []string{"model.image.style=resnet", "model.image.resnet.depth=18", "model.image.resnet.width=2", "model.image.resnet.small_stem=true"}
	sentences := slices.Concat(dual, cosine, untaught, []string{"objective.itc.in_batch_weight=0", "objective.itc.positives=pair", "model.head.topology=sphere", "model.head.dim=16", "objective.itc.score=cosine"})
	judged := slices.Concat(sentences, []string{"model.system=sentence_pairs", "objective.sentence_pairs.weight=1", "data.kind=sentence_pairs", "data.sentence_pairs.val_files=[\"pairs.csv\"]"})
	classified := slices.Concat(dual, cosine, untaught, []string{"model.system=classes", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itc.positives=pair", "model.head.topology=sphere", "model.head.dim=16",
		"objective.classes.weight=1"})
	return map[string][]string{
		"all of albef": nil,
		"simcse":       slices.Concat(sentences, []string{"model.system=simcse", "objective.simcse.weight=1", "objective.simcse.temperature=0.5"}),
		"simcse, triplets": slices.Concat(sentences, []string{"model.system=simcse", "objective.simcse.weight=1", "objective.simcse.head=always", "objective.simcse.hard_negative_weight=3", "data.kind=sentences",
			"data.sentences.train_files=[\"triplets.csv\"]", "data.sentences.sentence=a", "data.sentences.positive=b", "data.sentences.negative=c",
			"eval.sentences.tasks=[\"stsb=scores.csv\"]", "eval.sentences.feature=head"}),
		"clip, grounded": slices.Concat(sentences, []string{"model.system=clip", "model.head.style=tanh", "objective.simcse.weight=1", "objective.simcse.head=none", "objective.mcse.weight=0.5", "objective.mcse.temperature=0.5",
			"data.sentences.batches=1", "data.sentences.train_files=[\"lines.txt\"]"}),
		"sentence pairs": slices.Concat(judged, []string{"data.sentence_pairs.task=rte", "data.sentence_pairs.train_files=[\"pairs.csv\"]"}),
		"sentence pairs, joint": slices.Concat(judged, []string{"data.sentence_pairs.task=stsb", "data.sentence_pairs.train_files=[\"scores.csv\"]", "data.sentence_pairs.val_files=[\"scores.csv\"]",
			"objective.sentence_pairs.encoding=joint", "objective.sentence_pairs.dropout=0.5"}),
		"align, cca":         slices.Concat(aligned, []string{"model.align.cca.shrinkage=1"}),
		"align, ridge":       slices.Concat(aligned, []string{"model.align.method=ridge", "model.align.ridge.penalty=1"}),
		"align, procrustes":  slices.Concat(aligned, []string{"model.align.method=procrustes"}),
		"align, csa":         slices.Concat(aligned, []string{"model.align.method=csa", "model.align.csa.shrinkage=1"}),
		"align, asif":        slices.Concat(aligned, []string{"model.align.method=asif"}),
		"align, wasserstein": slices.Concat(aligned, []string{"model.align.method=wasserstein", "model.align.wasserstein.rows=20", "model.align.wasserstein.components=2"}),
		"heads, regularised": slices.Concat(heads, untaught, []string{"objective.geometric.weight=1", "objective.geometric.neighbours=3", "objective.geometric.pool=2", "model.heads.residual=true"}),
		"heads, started":     slices.Concat(heads, untaught, []string{"model.heads.layers=0", "model.heads.start=cca", "optimizer.eps=0.001"}),
		"masked words": slices.Concat(cosine, []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itm.weight=0", "eval.rerank_top=0", "queue.size=0", "eval.score=inner",
			"schedule.kind=constant", "schedule.warmup_steps=0"}),
		"entailment": slices.Concat(cosine, []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "data.views=1",
			"eval.rerank_top=0", "objective.entailment.weight=1", "data.kind=entailment", "data.examples.source=scenes"}),
		"multimodal": slices.Concat(cosine, []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "data.views=1",
			"eval.rerank_top=0", "objective.multimodal.weight=1", "data.kind=multimodal", "data.examples.source=scenes"}),
		"vqa": vqaSets,
		"nlvr": slices.Concat(cosine, []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "data.views=1",
			"eval.rerank_top=0", "objective.nlvr.weight=1", "data.kind=nlvr", "data.examples.source=scenes"}),
		"assignment": slices.Concat(cosine, []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "data.views=1",
			"objective.distill.alpha=0", "momentum.enabled=false", "eval.rerank_top=0", "objective.assignment.weight=1"}),
		"matching": slices.Concat(cosine, untaught, []string{"objective.itc.in_batch_weight=0", "objective.mlm.weight=0", "data.randaugment_ops=0", "optimizer.decay=0",
			"model.attention_metric.form=block_diag"}),
		"captions": slices.Concat(cosine, []string{"objective.itc.weight=0", "objective.itc.in_batch_weight=0", "objective.itc.score=cosine", "objective.itm.weight=0", "objective.mlm.weight=0", "queue.size=0", "data.views=1",
			"eval.rerank_top=0", "objective.captioning.weight=1", "objective.captioning.decoder=transformer", "objective.captioning.tokens=9", "objective.distill.alpha=0.3",
			"eval.captioning.nearest=7", "eval.captioning.max_tokens=5"}),
		"clip":          slices.Concat(dual, cosine, untaught, []string{"model.system=clip"}),
		"clip, network": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "objective.itc.score=gssf", "objective.gssf.form=mlp", "objective.gssf.hidden=6"}),
		"clip, sigmoid": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "objective.siglip.weight=1", "objective.itc.in_batch_weight=0"}),
		"clip, gru":     slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "model.text.style=gru", "model.text.gru.embedding=6", "model.text.layers=2"}),
		"clip, hinge": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1", "objective.hinge.margin=1.5", "objective.hinge.warmup_steps=2",
			"schedule.kind=step", "schedule.step_epochs=1", "schedule.step_factor=0.5",
			"objective.poly.weight=1", "objective.cmpm.weight=1"}),
		"clip, words and patches": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "model.head.topology=sphere", "objective.itc.in_batch_weight=0", "objective.word_patch.weight=1",
			"objective.token_image.weight=1", "objective.text_swap.weight=1"}),
		"clip, tokens": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "model.head.topology=sphere", "model.interaction.kind=max_soft"}),
		"matching, tokens": slices.Concat(dual, cosine, untaught, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=max_sum", "objective.itc.score=gssf",
			"objective.gssf.form=low_rank", "objective.gssf.rank=4", "run.seed=7", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"matching, regions": slices.Concat(dual, cosine, untaught, regions, []string{"model.image.pool=esa", "model.text.pool=esa", "model.image.regions.mask=0.4", "objective.hinge.weight=1", "objective.captioning.weight=1", "objective.captioning.width=6",
			"objective.captioning.embedding=5"}),
		"clip, region graph": slices.Concat(dual, cosine, untaught, regions, []string{"model.system=clip", "model.image.regions.encoder=graph", "model.image.regions.metric=block_diag",
			"model.image.regions.metric_blocks=2", "model.image.pool=gru", "model.image.regions.batch_norm=true"}),
		"matching, attention": slices.Concat(dual, cosine, untaught, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=scan", "run.seed=7" /* whose probe sees model.image.pool */, "objective.itc.score=gssf",
			"objective.gssf.form=sparse", "objective.gssf.l1=1", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"matching, vectors": slices.Concat(dual, cosine, untaught, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=sgr", "run.seed=13" /* whose probe sees model.image.pool */, "model.interaction.sim_dim=6", "model.interaction.steps=2",
			"objective.itc.score=gssf", "objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"clip, taught": slices.Concat(dual, cosine, []string{"model.system=clip", "objective.itc.score=geodesic", "objective.itc.in_batch_weight=0", "objective.geodesic.layers=5"}),
		"clip, fused": slices.Concat(dual, cosine, []string{"model.system=clip", "model.head.topology=sphere", "model.head.style=mlp", "model.head.shared=12", "momentum.rule=dynamic", "objective.itc.weight=0", "objective.adcl.weight=0.5",
			"objective.adcl.dropout=0.2", "objective.adcl.rank=2"}),
		"clip, queues":  slices.Concat(dual, cosine, []string{"model.system=clip", "model.head.topology=sphere", "model.head.style=mlp", "objective.itc.weight=0", "objective.adcl.weight=0.5", "objective.adcl.fusion=none"}),
		"clip, adapted": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "model.lora.rank=2", "train.accumulate_steps=2", "train.accumulate=features"}),
		"clip, tuned": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "model.text.layers=2", "model.lora.rank=2", "model.tuning.adapter_width=3", "model.tuning.prompt_tokens=2", "model.tuning.metric=block_diag",
			"model.tuning.metric_blocks=2", "model.tuning.ssf=true"}),
		"matching, memory": slices.Concat(dual, cosine, untaught, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=imram", "run.seed=16" /* whose probe sees model.image.pool */, "model.interaction.pool=lse", "objective.itc.score=gssf",
			"objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"matching, mismatches": slices.Concat(dual, cosine, untaught, []string{"model.system=matching", "model.head.topology=sphere", "model.head.dim=16", "model.interaction.kind=naaf", "run.seed=13" /* whose probe sees model.image.pool */, "objective.itc.score=gssf",
			"objective.itc.in_batch_weight=0", "objective.hinge.weight=1"}),
		"clip, idle twin": slices.Concat(dual, cosine, []string{"model.system=clip", "objective.itc.weight=0", "queue.size=0"}),
		"clip, regularised": slices.Concat(dual, cosine, []string{"model.system=clip", "objective.itc.weight=0", "objective.geometric.weight=1", "objective.geometric.search=exact",
			"objective.geometric.sampling=closest", "objective.geometric.kernel=linear", "objective.structure.weight=1"}),
		"heads":         slices.Concat(heads, untaught),
		"heads, taught": slices.Concat(heads, []string{"objective.itc.score=angle"}),
		"heads, plans":  slices.Concat(heads, untaught, []string{"objective.klot.weight=1", "objective.klot.iterations=2", "objective.klot.rows=3"}),
		"heads, walks":  slices.Concat(heads, untaught, []string{"objective.structure.weight=1", "objective.structure.hops=2", "objective.structure.warmup_steps=2"}),
		"identities": slices.Concat(dual, cosine, untaught, []string{"model.system=identities", "objective.itc.in_batch_weight=0", "objective.itc.positives=pair", "objective.itc.score=gssf", "model.head.topology=sphere",
			"objective.gssf.form=dense", "objective.gssf.decay=0.5", "objective.gssf.dropout=0.3",
			"objective.triplet.weight=1", "objective.triplet.negatives=all", "objective.softmax.weight=1", "objective.softmax.classes=64", "data.identities.images=2", "data.scenes.epoch_samples=60", "data.scenes.val_samples=60"}),
		"classes":            slices.Concat(classified, []string{"objective.classes.mixup=0.4", "objective.classes.cutmix=1", "objective.classes.norm=true"}),
		"classes, resnet":    slices.Concat(classified, resnet, []string{"model.head.dim=16"}),
		"moco":               slices.Concat(views, []string{"model.system=moco"}),
		"clip, image blocks": slices.Concat(dual, cosine, untaught, []string{"model.system=clip", "model.image.style=block", "model.image.block.rotary=cells", "model.image.block.relative=true"}),
		"clip, resnet":       slices.Concat(dual, cosine, untaught, resnet, []string{"model.system=clip", "model.image.resnet.frozen_stages=1"}),
		"moco, resnet":       slices.Concat(views, resnet, []string{"model.system=moco", "model.image.resnet.shuffle_groups=2"}),
		"moco, geodesic": slices.Concat(views, []string{"model.system=moco", "objective.itc.score=geodesic", "objective.geodesic.gradient=same_cluster",
			"objective.itc.in_batch_weight=1"}),
		"swav":           slices.Concat(views, []string{"model.system=swav", "momentum.enabled=false", "objective.swav.prototypes=6"}),
		"swav, resnet":   slices.Concat(views, resnet, []string{"model.system=swav", "momentum.enabled=false", "objective.swav.prototypes=6", "data.crops.count=2", "data.crops.size=6"}),
		"swav, geodesic": slices.Concat(views, []string{"model.system=swav", "momentum.enabled=false", "objective.swav.prototypes=6", "objective.itc.score=geodesic"}),
	}
}

// others are values of keys that differ from those of keysRuns where no rule tells one.
var others = map[string]string{
	"parallel.contrast": "local", "parallel.negatives": "local", "parallel.wire": "bf16",
	"data.grounding.refs": "elsewhere.p", "data.grounding.instances": "elsewhere.json", "data.grounding.detections": "elsewhere.json", "eval.grounding.mode": "itc",
	"data.kind": "folder", "data.root": "elsewhere", "data.vocab": "elsewhere.txt", "data.template": "file", "data.clean": "none", "data.cache": "memory", "data.cache_dir": "elsewhere", "data.cache_size": "64",
	"data.captions.train_files": "elsewhere.json", "data.captions.val_files": "elsewhere.json", "data.captions.test_files": "elsewhere.json",
	"data.karpathy.file": "elsewhere.json", "data.karpathy.image_root": "elsewhere",
	"data.csv.train_files": "elsewhere.csv", "data.csv.val_files": "elsewhere.csv", "data.csv.test_files": "elsewhere.csv", "data.csv.image": "elsewhere", "data.csv.caption": "elsewhere", "data.csv.id": "elsewhere", "data.csv.camera": "elsewhere", "data.csv.role": "elsewhere", "data.identities.short": "leave_out", "objective.triplet.negatives": "all|hardest", "objective.softmax.classes": "80", "objective.classes.cutmix": "0", "data.csv.separator": ";", "data.csv.quoting": "none",
	"data.coco.train_file": "elsewhere.json", "data.coco.val_file": "elsewhere.json", "data.coco.test_file": "elsewhere.json", "data.coco.train_images": "elsewhere", "data.coco.val_images": "elsewhere", "data.coco.test_images": "elsewhere",
	"data.flickr.file": "elsewhere.token", "data.flickr.image_root": "elsewhere", "data.flickr.train_list": "elsewhere.txt", "data.flickr.val_list": "elsewhere.txt", "data.flickr.test_list": "elsewhere.txt",
	"data.webdataset.train_files": "elsewhere.tar", "data.webdataset.val_files": "elsewhere.tar", "data.webdataset.test_files": "elsewhere.tar", "data.webdataset.json_key": "elsewhere",
	"data.parquet.train_files": "elsewhere.parquet", "data.parquet.val_files": "elsewhere.parquet", "data.parquet.test_files": "elsewhere.parquet", "data.parquet.image": "elsewhere", "data.parquet.caption": "elsewhere",
	"data.pairs.image": "elsewhere.npy", "data.pairs.text": "elsewhere.npy", "data.pairs.image_tensor": "elsewhere", "data.pairs.text_tensor": "elsewhere", "data.pairs.hold": "last", "data.pairs.image_pool": "elsewhere.npy", "data.pairs.text_pool": "elsewhere.npy", "data.pairs.index": "elsewhere.tsv", "data.pairs.paired": "20",
	"data.sentences.train_files": "elsewhere.txt", "data.sentences.val_files": "elsewhere.txt", "data.sentences.test_files": "elsewhere.txt", "data.sentences.sentence": "b", "data.sentences.positive": "c", "data.sentences.negative": "b",
	"model.head.style": "mlp|linear", "model.head.activation": "relu", "objective.simcse.head": "none|training", "objective.sentence_pairs.encoding": "joint|separate",
	"data.regions.source": "scenes|files", "data.regions.train": "elsewhere", "data.regions.val": "elsewhere", "data.regions.test": "elsewhere", "data.regions.features": "elsewhere.npz", "data.regions.tensor": "elsewhere", "data.regions.boxes": "elsewhere.npy", "data.regions.captions": "elsewhere.txt",
	"data.reid.layout": "cub|sop", "data.regions.caption_form": "words", "data.regions.ids": "elsewhere.txt", "data.regions.mapping": "elsewhere.json", "data.regions.pictures": "elsewhere", "data.regions.repeated": "yes", "data.vocab_kind": "words",
	"data.vqa.kinds": "question_type", "data.vqa.image_name": "%d.jpg", "data.vqa.genome_root": "elsewhere", "eval.vqa.candidates": "elsewhere.txt", "eval.vqa.common": "1", "eval.vqa.top": "1", "data.examples.source": "scenes|files", "data.examples.train_files": "elsewhere.json", "data.examples.val_files": "elsewhere.json", "data.examples.test_files": "elsewhere.json", "data.examples.image_root": "elsewhere",
	"data.scenes.max_objects": "1", "data.scenes.min_objects": "2", "data.tokens": "8", "data.token_lengths": "[5, 7]", "data.max_words": "3", "data.vocab_size": "64", "data.overfit_samples": "8", "data.views": "1",
	"data.prompts": `["query=a "]`, "data.prompt": "query", "model.head.dense": `["4 tanh"]`, "data.randaugment_level": "2", "data.scenes.epoch_samples": "28",
	"model.system": "blip", "model.head.topology": "Ob(2,4)", "model.head.token_blocks": "1", "model.heads.activation": "relu", "model.image.size": "16", "model.image.patch": "8", "model.image.heads": "4",
	"eval.zeroshot.image": "elsewhere.npy", "eval.zeroshot.text": "elsewhere.npy", "eval.zeroshot.image_labels": "elsewhere.txt", "eval.zeroshot.text_labels": "elsewhere.txt", "eval.zeroshot.image_tensor": "elsewhere", "eval.zeroshot.text_tensor": "elsewhere",
	"eval.zeroshot.images": "elsewhere", "eval.zeroshot.images_split": "test", "eval.zeroshot.classes": "elsewhere.txt", "eval.zeroshot.templates_file": "elsewhere.txt",
	"data.sentence_pairs.task": "mrpc", "data.sentence_pairs.train_files": "elsewhere.tsv", "data.sentence_pairs.val_files": "elsewhere.tsv", "data.sentence_pairs.test_files": "elsewhere.tsv",
	"eval.sentiment.train": "elsewhere.npz", "eval.sentiment.test": "elsewhere.npz", "eval.sentiment.train_texts": "elsewhere.txt", "eval.sentiment.test_texts": "elsewhere.txt", "eval.sentiment.modalities": `["audio"]`,
	"eval.sentences.tasks": "stsb", "eval.sentences.folder": "elsewhere", "eval.sentences.split": "test", "eval.sentences.feature": "mean", "eval.sentences.rules": `["fixed"]`,
	"eval.beside": `["zeroshot"]`, "eval.probe_hold": "0.5", "eval.textprobe.train": "elsewhere.tsv", "eval.textprobe.test": "elsewhere.tsv",
	"model.heads.layers": "0|1", "model.heads.start": "procrustes|cca", "model.align.method": "cca|procrustes", "model.align.ridge.direction": "text_to_image", "model.align.cca.components": "2", "model.align.csa.components": "2", "model.align.asif.k": "3", "model.align.wasserstein.restarts": "1",
	"model.heads.in_image": "7", "model.heads.in_text": "7", "model.image.mlp": "24", "model.text.mlp": "24", "model.text.heads": "4", "model.views.hidden": "12",
	"model.image.style": "dinov2|vit", "model.image.regions.encoder": "mlp|linear", "model.image.regions.metric": "diag", "model.image.activation": "swiglu", "model.image.pool": "mean", "model.image.mean": "[0.5, 0.5, 0.5]", "model.image.std": "[0.5, 0.5, 0.5]", "model.image.resize": "crop", "model.image.crop": "0.5", "model.image.centre": "down", "model.image.block.rotary": "centred|cells", "model.image.interpolation": "bilinear",
	"model.image.resnet.depth": "34", "model.image.resnet.frozen_stages": "2", "model.image.resnet.teacher_norm": "running", "model.image.resnet.shuffle_groups": "4|2",
	"model.tuning.adapter_activation": "relu", "model.tuning.metric": "diag", "model.tuning.metric_blocks": "4",
	"model.lora.layers": `["text/layers/*/ffn/*"]`, "model.text.style": "roberta|bert", "model.text.gru.directions": "forward", "model.text.block.norm": "rms", "model.text.block.order": "post", "model.text.block.qk_norm": "rms", "model.text.block.places": "alibi", "model.image.convnet.blocks": `["conv k3 s2 c8"]`, "model.image.convnet.activation": "silu", "model.image.convnet.gate": "hardsigmoid", "model.image.convnet.padding": "same", "model.text.activation": "quick_gelu", "model.text.pool": "mean", "model.head.identity": "image",
	"objective.distill.ramp_steps": "4", "objective.distill.ramp_epochs": "2", "schedule.warmup_percent": "50", "queue.start_steps": "4", "queue.size": "24",
	"objective.itc.score": "l2", "objective.itc.scores": `[{kind = "l2", weight = 1.0}]`, "objective.itc.target_score": "cosine", "objective.itc.positives": "pair", "objective.itc.temperature_max": "0.06", "objective.itc.temperature_min": "0.5",
	"model.interaction.kind": "max_ave|max_sum", "model.interaction.focus": "prob", "model.interaction.direction": "image_to_text|text_to_image", "model.interaction.attention_scale": "3", "model.interaction.sim_dim": "5", "model.interaction.steps": "1", "model.interaction.dropout": "0.7", "model.interaction.pool": "mean", "model.interaction.lse_scale": "3", "model.interaction.metric": "attention", "objective.hinge.negatives": "all", "objective.hinge.warmup_steps": "4", "objective.hinge.warmup_epochs": "2",
	"objective.gssf.form": "diag", "objective.gssf.blocks": "4", "objective.gssf.decay_to": "zero", "objective.gssf.start": "random", "objective.distill_scores.teacher": "elsewhere", "objective.distill_scores.metric": "diag",
	"model.attention_metric.form": "diag", "model.attention_metric.blocks": "2", "model.attention_metric.heads": "shared", "model.attention_metric.where": `["text"]`,
	"objective.geodesic.layers": "[3, 4]", "objective.geodesic.construction": "split", "objective.geodesic.neighbours": "1", "objective.geodesic.iterations": "1", "objective.geodesic.kmeans_init": "plusplus",
	"objective.geodesic.gradient": "strict", "objective.geodesic.limit_pi": "0.3", "objective.geodesic.entries": "2", "objective.geodesic.temperature": "0.2", "objective.geodesic.weigh": "3", "objective.geodesic.lag_steps": "1",
	"objective.geometric.modalities": "text", "objective.geometric.sampling": "uniform", "objective.geometric.search": "exact|clusters", "momentum.ramp_steps": "50", "momentum.rule": "dynamic_teacher", "model.head.shared": "20", "objective.adcl.fusion": "attention|none", "objective.geometric.kernel": "inverse", "objective.geometric.scale": "relative", "objective.geometric.pool": "4",
	"model.image.regions.mask": "0.3", "objective.captioning.tokens": "3", "objective.captioning.decoder": "transformer|gru", "objective.word_patch.reduce": "sum", "objective.token_image.negatives": "half", "objective.text_swap.attention": "batch", "objective.tcl.grid": "1", "objective.mafa.connector": "elsewhere", "objective.matryoshka.dims": "[4]", "objective.siglip.scale_max": "5", "objective.klot.reference": "procrustes", "objective.structure.modalities": "text", "objective.swav.iterations": "1", "objective.itm.negatives": "angle",
	"optimizer.no_decay": "[]", "optimizer.eps": "0.01", "optimizer.clip_norm": "0.01",
	"schedule.kind": "staircase", "train.accumulate": "features|gradients", "train.max_steps": "7", "train.max_epochs": "7", "eval.split": "test", "eval.score": "l2", "eval.ties": "mean", "eval.rerank_score": "sum", "eval.rerank_top": "20", "eval.folds": "2", "eval.max_images": "10",
	"eval.probe_samples": "200", "eval.probe_decay": "100000", "eval.probe_neighbours": "1", "init.checkpoint": "elsewhere", "init.image.path": "elsewhere", "init.text.path": "elsewhere", "init.image.family": "vit", "init.text.family": "bert", "compute.precision": "bf16",
}

// unseen are keys that are read and that these numbers do not show: they say where and
// when, how fast, what becomes of bad luck, of more words than are here, and what images with several captions, or that are
// no squares, are.
var unseen = []string{
	"eval.rerank_score", "run.name", "run.out", "data.max_pixels", "data.changed", "data.max_bad_share", "data.scenes.test_samples", "data.pairs.test_samples", "eval.probe_decay", "eval.probe_neighbours", "eval.probe_hold", "eval.beside", "eval.sentences.tasks", "data.sentences.test_files", "data.sentence_pairs.test_files", "model.interaction.penalty", "model.interaction.focus", "eval.zeroshot.average", "eval.zeroshot.templates", "train.max_steps", "train.max_epochs", "train.max_samples", "train.max_minutes", "data.workers", "data.prefetch", "data.cache_dir", "data.cache_max_gb", "objective.itc.positives", "model.image.resize", "model.image.crop", "model.image.centre", "train.log_every_steps",
	"train.eval_every_steps", "train.on_nan", "eval.batch_size", "compute.backend", "compute.device", "compute.threads", "compute.recompute", "compute.check_nan", "objective.geometric.chunk", "eval.grounding.mode", "eval.grounding.layer",
	"train.save_every_steps", "train.save_every_minutes", "train.keep_best_by", "train.keep_last", "train.keep_best", "train.keep_every_steps",
}

// unseenIn are further such keys of some runs: evaluations of which read files of their own, in few pairs, and two texts in one have their
// own template.
var unseenIn = map[string][]string{
	"simcse, triplets": {"eval.split", "eval.max_images", "eval.sentences.folder", "eval.sentences.split", "eval.sentences.rules", "eval.sentences.max_train", "eval.sentences.max_pairs", "eval.sentences.isotropy"},
	"clip, grounded":   {"data.scenes.epoch_samples", "data.sentences.val_files", "data.sentences.sentence", "data.drop_last"}, // epochs of whole batches, and lines
	// What other evaluations of such a model read, by its features; and scenes whose sentences need no cleaning.
	"captions": {"data.clean", "model.text.pool", "model.head.topology", "objective.itc.score", "objective.itc.scores", "eval.score", "eval.folds", "eval.ties", "eval.captioning.beams", "eval.captioning.min_tokens"},
	"entailment": {"data.clean", "model.image.pool", "model.text.pool", "model.head.topology", "objective.itc.score", "objective.itc.scores", "eval.score", "eval.folds", "eval.ties", "eval.probe_samples",
		"eval.zeroshot.images", "eval.zeroshot.classes", "eval.zeroshot.templates_file"},
	"multimodal": {"data.clean", "model.image.pool", "model.text.pool", "model.head.topology", "objective.itc.score", "objective.itc.scores", "eval.score", "eval.folds", "eval.ties", "eval.probe_samples",
		"eval.zeroshot.images", "eval.zeroshot.classes", "eval.zeroshot.templates_file"},
	"vqa": {"eval.vqa.top", "data.clean", "model.image.pool", "model.text.pool", "model.head.topology", "objective.itc.score", "objective.itc.scores", "eval.score", "eval.folds", "eval.ties", "eval.probe_samples",
		"eval.zeroshot.images", "eval.zeroshot.classes", "eval.zeroshot.templates_file"},
	"nlvr": {"eval.split", "data.clean", "model.image.pool", "model.text.pool", "model.head.topology", "objective.itc.score", "objective.itc.scores", "eval.score", "eval.folds", "eval.ties", "eval.probe_samples",
		"eval.zeroshot.images", "eval.zeroshot.classes", "eval.zeroshot.templates_file"},
	"sentence pairs":        {"eval.max_images", "data.sentence_pairs.task"},
	"sentence pairs, joint": {"eval.max_images", "data.template"},
}

// numbers makes all numbers of a run of some steps, in pieces: those of each step, the
// parameters, and those of every evaluation. It ends early where piece returns false.
func numbers(ctx context.Context, cfg config.Config, piece func(text string) bool) error {
	r, err := openRun(ctx, cfg, Options{}, true)
	if err != nil {
		return err
	}
	defer r.Close()
	steps := 6
	if r.pairs == nil { // a fit
		steps = 1
	}
	for i := range steps {
		x, err := r.session.Step(ctx, i)
		if err != nil {
			return err
		}
		parts := slices.DeleteFunc(x.Parts, func(v train.Value) bool { return strings.HasSuffix(v.Name, "/seconds") })
		if !piece(fmt.Sprint(x.LR, parts)) {
			return nil
		}
	}
	h := sha256.New()
	add := func(v any) { _ = binary.Write(h, binary.LittleEndian, v) }
	if r.pairs == nil {
		for _, part := range r.model.(fitted).State() {
			for _, x := range part.Tensors() {
				add([]byte(x.Name))
				add(x.Data)
			}
		}
	} else {
		p := r.pairs.Params()
		for _, q := range p.List() {
			add([]byte(q.Name))
			add(p.Value(q))
		}
		p.MomentumRuns(func(_ int, twin []float32) { add(twin) })
	}
	if !piece(fmt.Sprintf("%x", h.Sum(nil))) {
		return nil
	}
	tasks := []string{DefaultTask(cfg)}
	if !cfg.Has(section.Stored) && !cfg.Has(section.Sentences) && !cfg.Data.ReadsExamples() && tasks[0] != probe.Name {
		if tasks = append(tasks, probe.Name); !cfg.Has(section.TokenScores) && !cfg.Has(section.ImagesAlone) { // which names classes by features
			tasks = append(tasks, zeroshot.Name)
		}
	}
	for _, task := range tasks {
		s, err := Evaluate(ctx, Evaluation{Task: task, Config: r.cfg, Engine: r.engine, Model: r.model, Tokenizer: r.tok, Set: r.set})
		if err != nil {
			return err
		}
		text := fmt.Sprint(s.Values())
		if x, ok := s.(retrieval.Scores); ok {
			text += x.Score // which on one sphere may rank as another one does
		}
		if !piece(text) {
			return nil
		}
	}
	return nil
}

// same says whether a configuration makes the numbers that another one made.
func same(ctx context.Context, cfg config.Config, want []string) (bool, error) {
	i, equal := 0, true
	err := numbers(ctx, cfg, func(text string) bool {
		equal = i < len(want) && text == want[i]
		i++
		return equal
	})
	return equal && i == len(want), err
}

// override sets a key to another value than it has in c.
func override(c config.Config, path string) string {
	v, _ := c.Get(path)
	for other := range strings.SplitSeq(others[path], "|") {
		if other != "" && other != fmt.Sprint(v) {
			return path + "=" + other
		}
	}
	switch x := v.(type) {
	case bool:
		v = !x
	case int:
		v = max(1, 2*x)
	case uint64:
		v = x + 1
	case float64:
		if v = x / 2; x == 0 {
			v = 0.25
		}
	}
	return fmt.Sprintf("%s=%v", path, v)
}

// noted are the keys of which c notes that they do nothing.
func noted(c config.Config) map[string]bool {
	set := map[string]bool{}
	for _, u := range c.Unread() {
		set[u.Path] = true
	}
	for _, line := range c.Advice() {
		if path, _, ok := strings.Cut(line, " is"); ok {
			set[path] = true
		}
	}
	return set
}

// TestKeys changes every key in every kind of run. A key is refused, or it changes the
// numbers, or Unread lists it, and then it changes none.
func TestKeys(t *testing.T) {
	base := check.Get(os.ReadFile("testdata/keys.toml"))(t)
	dir := t.TempDir()
	filetest.Write(t, filepath.Join(dir, "vocab.txt"), "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\na\nred\nblue\ngreen\nsquare\ncircle\nabove\nleft\n")
	writeSentences(t, dir)
	for side, width := range map[string]int{"image": 6, "text": 4} {
		writeFeatures(t, filepath.Join(dir, side+".safetensors"), 80, width)
	}
	for name, sets := range keysRuns(dir) {
		if testing.Short() && !strings.HasPrefix(name, "swav") {
			continue
		}
		sets = append([]string{"data.root=" + dir, "data.vocab=vocab.txt"}, sets...)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := check.Get(config.Parse("keys.toml", base, sets))(t)
			with := func(c config.Config, set string) (config.Config, error) {
				c, err := c.With(set)
				if err == nil {
					err = c.Validate()
				}
				return c, err
			}
			var want []string
			check.OK(t, numbers(t.Context(), cfg, func(text string) bool { want = append(want, text); return true }))
			without := noted(cfg) // what the run has and does without
			all, idle := cfg, []string(nil)
			for _, path := range config.Paths() {
				if slices.Contains(unseen, path) || slices.Contains(unseenIn[name], path) {
					continue
				}
				set := override(cfg, path)
				c, err := with(cfg, set)
				switch {
				case err != nil: // refused
				case noted(c)[path]:
					if more, err := with(all, set); err == nil { // else another unit of one that is there
						all, idle = more, append(idle, set)
					}
				case !without[path]:
					if equal, err := same(t.Context(), c, want); err == nil && equal {
						t.Errorf("%s changes nothing and is not noted", set)
					}
				}
			}
			if equal, err := same(t.Context(), all, want); err != nil || !equal {
				t.Errorf("something reads one of these, which are said to be read by nothing (%v): %s", err, strings.Join(idle, " "))
			}
		})
	}
}

// writeSentences writes files of sentences, triplets and pairs.
func writeSentences(t *testing.T, dir string) {
	t.Helper()
	colours, shapes := []string{"red", "blue", "green"}, []string{"square", "circle"}
	lines, triplets, pairs, scores := "", "a,b,c\n", "sentence1,sentence2,label\n", "sentence1,sentence2,score\n"
	for i := range 21 {
		a := "a " + colours[i%3] + "! " + shapes[i%2] + strings.Repeat(" left", i%5)
		b := shapes[i%2] + " above " + colours[(i+i/7)%3]
		c := "green " + shapes[(i+1)%2] + " a"
		lines += a + "\n"
		triplets += a + "," + b + "," + c + "\n"
		pairs += fmt.Sprintf("%s,%s,%d\n", a, b, i/7%2)
		scores += fmt.Sprintf("%s,%s,%d\n", a, b, (i*i)%6)
	}
	for name, text := range map[string]string{"lines.txt": lines, "triplets.csv": triplets, "pairs.csv": pairs, "scores.csv": scores} {
		check.OK(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644))
	}
}

// writeFeatures writes n rows of features of a width.
func writeFeatures(t *testing.T, path string, n, width int) {
	t.Helper()
	x := make([]float32, n*width)
	for i := range x {
		x[i] = float32(math.Sin(float64(i*i%997 + 7*i)))
	}
	writeTensors(t, path, safetensors.Tensor{Name: "rows", Shape: []int{n, width}, Data: x})
}

// writeTensors writes a file of tensors.
func writeTensors(t *testing.T, path string, list ...safetensors.Tensor) {
	t.Helper()
	f := check.Get(os.Create(path))(t)
	check.OK(t, safetensors.Write(f, list, nil))
	check.OK(t, f.Close())
}
