# Two commands do all the set-up: make quickstart, make test.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2
GORELEASER = github.com/goreleaser/goreleaser/v2@v2.13.3
HUGO = github.com/gohugoio/hugo@v0.163.3
CYCLONEDX = github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.10.0

.DEFAULT_GOAL := help
.PHONY: help arm deps build static quickstart frozen bench tables test kills interop parity real race fuzz campaign differential lint experiments vuln generated release reproducible site ci

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

deps: ## install Open MPI and qemu-user, which are optional, if they are missing and that is possible
	@sh tools/deps.sh

build: ## build bin/trainer
	CGO_ENABLED=0 $(GO) build -o bin/trainer ./cmd/trainer

static: ## build bin/trainer-static, which needs no C library and loads none
	CGO_ENABLED=0 $(GO) build -tags static -o bin/trainer-static ./cmd/trainer

quickstart: build ## train and evaluate the shipped model on built-in data, in minutes
	bin/trainer train --config configs/quickstart.toml --resume never

FROZEN = runs/gera-quickstart
frozen: build ## align two plain spaces of the built-in pictures by heads, and search one by words, in a minute
	bin/trainer data features --out runs/features
	bin/trainer train --config configs/gera-quickstart.toml --out $(FROZEN) --resume never
	bin/trainer embed --checkpoint $(FROZEN) --rows runs/features/image.npy --names runs/features/texts.txt --out $(FROZEN)/gallery
	bin/trainer data features --text "a big blue square at the top left" --out runs/features/query.npy
	bin/trainer search $(FROZEN)/gallery --text-features runs/features/query.npy

bench: build ## measure a training step of each model in configs/bench; BENCH='--set compute.precision=bf16' adds flags
	@set -e; for c in albef-small clip-small heads; do bin/trainer bench --config configs/bench/$$c.toml $(BENCH); echo; done
	bin/trainer bench --config configs/bench/albef-base.toml --steps 2 --warmup 1 $(BENCH)

tables: build ## measure what a step costs as batch, tokens, depth, queue, vocabulary and threads grow, in minutes
	bin/trainer bench --config configs/bench/albef-small.toml --steps 2 --warmup 1 --vary batch=8,16,32 --vary tokens=15,30,60 \
		--vary depth=2,4,6 --vary image=64,128,192 --vary queue=1024,16384,65536 --vary vocabulary=1000,10000,30522 \
		--vary threads=1,2 --vary precision=fp32,bf16 $(BENCH)
	@echo
	bin/trainer bench --config configs/bench/clip-small.toml --steps 2 --warmup 1 --vary batch=32,64,128 $(BENCH)
	@echo
	bin/trainer bench --config configs/bench/heads.toml --steps 2 --warmup 1 --vary batch=500,1000,2000 --vary hidden=2000,4000,8000 $(BENCH)

test: ## run all tests; TESTFLAGS adds flags
	CGO_ENABLED=0 $(GO) test -timeout 15m $(TESTFLAGS) ./...

kills: ## kill writers of a gallery 200 times, and send 100,000 requests to a server that is changed, in minutes
	CGO_ENABLED=0 $(GO) test ./gallery -run '^TestKills$$' -kills 200 -v
	CGO_ENABLED=0 $(GO) test ./serve -run '^TestMemoryStays$$' -requests 100000 -timeout 20m -v

arm: ## on an arm64 that qemu-user plays: tests of kernels, and the losses of 3 steps of the quickstart, in minutes
	@GO="$(GO)" sh tools/arm64.sh kernels
	@GO="$(GO)" sh tools/arm64.sh quickstart

race: ## look for data races in everything but the kernels, cmd and tools; needs cgo and a C compiler
	CGO_ENABLED=1 $(GO) test -race -short -timeout 60m $$($(GO) list ./... | grep -v -e /internal/kernel -e /cmd/ -e /tools/)

FUZZTIME ?= 30s
fuzz: ## fuzz every parser for FUZZTIME=30s each
	GO="$(GO)" tools/fuzz.sh $(FUZZTIME)

campaign: deps build ## 1000 kills, damaged checkpoints, too little memory, full disks, an hour of training and kills of two processes, in some hours; docs/reliability.md
	$(GO) run ./tools/campaign kill -n 1000 -bin bin/trainer
	$(GO) run ./tools/campaign damage -n 1000 -bin bin/trainer
	CGO_ENABLED=0 $(GO) test ./cmd/trainer -run RandomSettings -settings 10000 -v -timeout 2h
	$(GO) run ./tools/campaign memory -n 200 -bin bin/trainer
	$(GO) run ./tools/campaign soak -for 1h
	$(GO) run ./tools/campaign disk -n 100 -bin bin/trainer
	$(GO) run ./tools/campaign kill -n 50 -ranks 2 -bin bin/trainer

lint: ## gofmt, go vet and staticcheck
	@files=$$(gofmt -l .) && { [ -z "$$files" ] || { echo "gofmt -w these files:"; echo "$$files"; exit 1; }; }
	$(GO) vet ./...
	@$(GO) run $(STATICCHECK) -version >/dev/null || { echo "lint: $(STATICCHECK) could not be downloaded or built"; exit 1; }
	$(GO) run $(STATICCHECK) ./...

experiments: ## vet and test the programs of experiments/, a module of their own
	cd experiments && CGO_ENABLED=0 $(GO) vet ./... && $(GO) run $(STATICCHECK) ./... && CGO_ENABLED=0 $(GO) test ./...

vuln: ## known vulnerabilities in what is called, where their database can be reached
	@GO="$(GO)" sh tools/vuln.sh

interop: ## compare with the real packages at full size; PYTHON=venv/bin/python names an interpreter that has them (docs/interop.md)
	@[ -n "$(PYTHON)" ] || { echo "interop: name an interpreter that has torch, transformers, timm, open_clip, safetensors, onnx and onnxruntime: make interop PYTHON=venv/bin/python"; exit 1; }
	CGO_ENABLED=0 GEOALIGN_PYTHON="$(if $(findstring /,$(PYTHON)),$(abspath $(PYTHON)),$(PYTHON))" $(GO) test ./interop -v -count 1 -timeout 60m

parity: ## the programs of published repositories judge ours; PEERS=DIR has their working trees, PYTHON=... an interpreter with torch (docs/interop.md)
	@[ -n "$(PYTHON)" ] && [ -n "$(PEERS)" ] || { echo "parity: name an interpreter and a folder of working trees: make parity PEERS=DIR PYTHON=venv/bin/python [ONLY=scan,vsepp]"; exit 1; }
	CGO_ENABLED=0 $(GO) build -o bin/parity ./interop/parity
	$(PYTHON) interop/parity/parity.py --peers "$(PEERS)" --program bin/parity $(if $(ONLY),--only "$(ONLY)") $(if $(GOLDEN),--golden "$(GOLDEN)") $(if $(ROUNDING),--rounding)

REAL_CACHE ?= $(HOME)/.cache/geoalign-real
real: build ## compare real weights (MiniLM-L6, fetched once) with sentence-transformers; PYTHON=venv/bin/python, STS=folder of STS12 to STS14, CAPTIONS=list of captions
	@[ -n "$(PYTHON)" ] || { echo "real: skipped: name an interpreter that has sentence-transformers: make real PYTHON=venv/bin/python"; exit 0; }; \
	CGO_ENABLED=0 $(GO) test -c -o bin/geoalign.test . && \
	$(PYTHON) interop/real.py --trainer bin/trainer --cache "$(REAL_CACHE)" $(if $(STS),--sts "$(STS)") $(if $(CAPTIONS),--captions "$(CAPTIONS)") --speed bin/geoalign.test

RELEASE ?= release --snapshot --clean
release: ## programs, archives, a Debian package, checksums and lists of modules in dist/, published nowhere (RELEASE="release --clean" publishes a tag)
	GOBIN="$(CURDIR)/bin" $(GO) install $(GORELEASER)
	GOBIN="$(CURDIR)/bin" $(GO) install $(CYCLONEDX)
	PATH="$(CURDIR)/bin:$$PATH" goreleaser $(RELEASE)

reproducible: ## build the static program in this folder and in a copy of it, and compare the bytes
	@GO="$(GO)" sh tools/reproducible.sh

site: ## README and docs/ as HTML with a search box in dist/site; the first time Hugo is downloaded and built
	CGO_ENABLED=0 GOBIN="$(CURDIR)/bin" $(GO) install $(HUGO)
	bin/hugo build --source tools/site --destination "$(CURDIR)/dist/site" --cleanDestinationDir --noBuildLock --quiet --panicOnWarning

generated: ## check that generated files are what their generators make
	@GO="$(GO)" sh tools/generated.sh

ci: ## what the continuous integration runs
	.ci/run

differential: ## thousands of made inputs through us and the programs whose rules we follow; PYTHON=venv/bin/python has tools/differential/requirements.txt
	@[ -n "$(PYTHON)" ] || { echo "differential: name an interpreter that has tools/differential/requirements.txt: make differential PYTHON=venv/bin/python"; exit 1; }
	$(GO) run ./tools/differential all -python "$(PYTHON)"
