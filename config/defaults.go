package config

// Default returns the configuration of a run that says nothing: ALBEF's
// pre-training of ViT-B/16 at 256 pixels with BERT-base (6 text and 6 fusion
// layers), on the built-in scenes. The values are those of the reference code
// (configs/Pretrain.yaml and models/model_pretrain.py of salesforce/ALBEF),
// except for the batch size, which is that of one of its eight devices, and for
// the checkpoint and logging intervals, which the reference leaves open. Those of
// model.heads are the best ones of GeRA's table 1, those of objective.swav SwAV's.
//
// The reference starts from pre-trained towers. A run from random weights
// should also set objective.itc.in_batch_weight, queue.start_steps and
// momentum.ramp_steps; Advice says so.
func Default() Config {
	return Config{
		Run: Run{Name: "run", Seed: 42},
		Data: Data{
			Kind:           "scenes",
			Root:           ".",
			Pairs:          Pairs{ValSamples: 1000, TestSamples: 1000},
			Scenes:         Scenes{MinObjects: 1, MaxObjects: 4, EpochSamples: 10000, ValSamples: 1000, TestSamples: 1000},
			MaxPixels:      64_000_000,
			MaxBadShare:    0.01,
			MaxWords:       30,
			Tokens:         30,
			VocabSize:      30522,
			Prefetch:       4,
			Cache:          "none",
			CacheMaxGB:     4,
			CropScaleMin:   0.2,
			Flip:           true,
			RandAugmentOps: 2,
			RandAugmentLvl: 7,
			Views:          1,
			DropLast:       true,
		},
		Model: Model{
			System: "albef",
			Image:  Image{Size: 256, Patch: 16, Depth: 12, Width: 768, Heads: 12},
			Text:   Text{Layers: 6, FusionLayers: 6, Width: 768, Heads: 12, Positions: 512, Dropout: 0.1},
			Head:   Head{Dim: 256, Topology: "sphere"},
			Heads:  Heads{InImage: 768, InText: 768, Hidden: 8000, Dropout: 0.3, Activation: "gelu"},
		},
		Momentum: Momentum{Enabled: true, M: 0.995, Dropout: true},
		Queue:    Queue{Size: 65536},
		Objective: Objective{
			Distill: Distill{Alpha: 0.4, RampEpochs: 1},
			ITC: ITC{Weight: 1, Score: "cosine", TargetScore: "same", Positives: "pair", Temperature: 0.07, TemperatureMin: 0.001,
				TemperatureMax: 0.5, LearnTemperature: true},
			Geodesic: Geodesic{Layers: []int{16, 256}, Construction: "group", Neighbours: 8, Iterations: 5, KMeansInit: "plusplus",
				WarmStart: true, PeriodSteps: 100, Gradient: "same_cluster+straight_through+soft_entry", Entries: 8, Softness: 0.05, LimitPi: 4, Mix: 1},
			GSSF:      GSSF{Form: "block_diag"},
			Geometric: Geometric{Modalities: "both", Neighbours: 16, Pool: 5, Sampling: "biased", Search: "exact", Kernel: "heat", Epsilon: 0.8, Scale: "unit"},
			TCL:       TCL{Grid: 4},
			MAFA:      MAFA{PositiveAbove: 0.8, NegativeBelow: 0.5},
			SwAV:      SwAV{Prototypes: 3000, Epsilon: 0.05, Iterations: 3},
			ITM:       ITM{Weight: 1, Negatives: "score"},
			MLM:       MLM{Weight: 1, Prob: 0.15},
		},
		Optimizer: Optimizer{LR: 1e-4, Beta1: 0.9, Beta2: 0.999, Eps: 1e-8, Decay: 0.02,
			NoDecay: []string{"bias", "1d", "temperature", "metric"}},
		Schedule: Schedule{Kind: "cosine", WarmupSteps: 2000, WarmupLR: 1e-5, MinLR: 1e-5},
		Train: Train{BatchSize: 64, AccumulateSteps: 1, MaxEpochs: 30, LogEverySteps: 10,
			SaveEverySteps: 1000, SaveEveryMinutes: 15, KeepLast: 2, KeepBest: 1, OnNaN: "stop"},
		Eval:    Eval{Split: "val", BatchSize: 64, Score: "train", ProbeSamples: 10000, ProbeDecay: 1e-3, ProbeNeighbours: 20},
		Compute: Compute{Backend: "auto", Precision: "fp32"},
	}
}
