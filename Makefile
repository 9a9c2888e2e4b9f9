# Two commands do all the set-up: make quickstart, make test.

GO ?= go
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.DEFAULT_GOAL := help
.PHONY: help deps build quickstart test lint ci

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

deps: ## install the oneDNN run-time library if it is missing and that is possible
	@sh tools/deps.sh

build: ## build bin/trainer
	CGO_ENABLED=0 $(GO) build -o bin/trainer ./cmd/trainer

quickstart: deps build ## train and evaluate the shipped model on built-in data, in minutes
	bin/trainer train --config configs/quickstart.toml --resume never

test: deps ## run all tests
	CGO_ENABLED=0 $(GO) test -timeout 15m ./...

lint: ## gofmt, go vet and staticcheck
	@files=$$(gofmt -l .) && { [ -z "$$files" ] || { echo "gofmt -w these files:"; echo "$$files"; exit 1; }; }
	$(GO) vet ./...
	@$(GO) run $(STATICCHECK) -version >/dev/null || { echo "lint: $(STATICCHECK) could not be downloaded or built"; exit 1; }
	$(GO) run $(STATICCHECK) ./...

ci: ## what the continuous integration runs
	.ci/run
