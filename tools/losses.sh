#!/bin/sh
# Trains every shipped configuration for 40 steps and prints the losses of each step and the evaluation of a few samples
# with all their digits, to show that two programs compute the same to the bit on one machine:
#
#   tools/losses.sh old/trainer ../shared/data >before.txt
#   tools/losses.sh bin/trainer ../shared/data >after.txt
#   diff before.txt after.txt | head
#
# A third argument names configurations: tools/losses.sh bin/trainer ../shared/data quickstart bench/lora. What follows a
# checkpoint follows the one of this run. A configuration that cannot run is printed as skipped, with the reason.
set -eu
bin=$(realpath "$1") data=$(realpath "$2") configs=$(realpath "$(dirname "$0")/../configs")
shift 2
[ $# -gt 0 ] || set -- scenes connector words captioning places vqa $(cd "$configs" && find . -name '*.toml' ! -path './ablation/*' | sort | sed 's,^\./,,; s,\.toml$,,')
tune= # programs of before this key was gone chose kernels by measuring
! "$bin" doctor --help | grep -q -e --tune || tune=compute.tune=off
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cd "$tmp"
"$bin" data features --out runs/features --quiet >log 2>&1 || cat log >&2

# settings prints where the data of a configuration is and sizes with which it takes seconds.
settings() {
	clip="data.root=$data/clip_features/clip_b32_1000 data.pairs.image=clip_image_embeddings.npy data.pairs.text=lsa_text_embeddings.npy"
	case $1 in
	connector) echo "data.scenes.min_objects=1 data.scenes.max_objects=2" ;;
	*flickr8k) echo "data.root=$data/flickr8k" ;;
	*moco* | *swav*) echo "data.root=$data/cifar10" ;;
	align | heads | migrate | sotalign) echo "$clip" ;;
	gera) echo "$clip train.batch_size=100 objective.geometric.neighbours=10 model.heads.hidden=256 model.head.dim=64" ;;
	easy_vqa) echo "data.root=$data/easy_vqa data.examples.test_files=train/questions.json" ;;
	lit) echo "data.root=$data/flickr8k init.image.path= model.image.size=32 model.image.depth=1 train.batch_size=32" ;;
	bench/albef* | bench/encode*) echo "model.image.depth=1 model.text.layers=1 model.image.size=64 train.batch_size=8" ;;
	bench/clip-small | bench/lora) echo "train.batch_size=8 model.image.size=64 data.vocab_size=1000" ;;
	bench/gera | bench/heads) echo "data.kind=pairs $clip model.heads.in_image=0 model.heads.in_text=0 data.pairs.val_samples=100 data.pairs.test_samples=100 train.batch_size=100 model.heads.hidden=256" ;;
	bench/gssf*) echo "train.batch_size=16 model.image.width=128 model.text.width=128 model.head.dim=128" ;;
	esac
	case $1 in
	bench/gera) echo "objective.geometric.neighbours=4" ;;
	bench/albef*) echo "model.text.fusion_layers=1 queue.size=256 data.vocab_size=1000" ;;
	scenes | quickstart | ideas/* | geo* | moco* | swav* | vipmm* | flickr8k) echo "queue.size=512 queue.start_steps=10" ;;
	esac
	case $1 in
	geo* | ideas/geodesic) echo "objective.geodesic.layers=4,16 objective.geodesic.period_steps=10" ;;
	esac
}

for name; do
	[ ! -d "runs/$name" ] || continue
	command=train config=$name
	case $name in
	captioning) command="finetune --checkpoint runs/words" ;;
	connector) config=scenes ;; # which configs/geomm-mafa.toml asks
	esac
	flags=
	for s in $(settings "$name") compute.backend=builtin compute.threads=1 $tune train.log_every_steps=1 train.save_every_steps=0 \
		train.save_every_minutes=0 train.eval_every_steps=0 train.keep_best=0 eval.max_images=10 eval.rerank_top=0 eval.beside=[]; do
		flags="$flags --set $s"
	done
	if "$bin" $command --config "$configs/$config.toml" --out "runs/$name" --resume never --max-steps 40 --quiet $flags >log 2>&1; then
		grep -oE '"(step|grad_norm|(loss|fit/|eval/)[^"]*)":[^,}]*' "runs/$name/metrics.jsonl" | tr -d '"' |
			awk -F: -v name="$name" '$1 == "step" {step = $2; next} {print name, "step", step, $1, $2}'
	else
		echo "$name skipped: $(tr '\n' ' ' <log)"
	fi
done
