# SPDX-License-Identifier: Apache-2.0
#
# "make" prints the targets with what they do: the comment beside each of them.

GO    ?= go
TOOLS := $(CURDIR)/.drover/bin

GOLANGCI_VERSION    := v2.14.0
STATICCHECK_VERSION := v0.8.2
GOLANGCI    := $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION)
STATICCHECK := $(TOOLS)/staticcheck-$(STATICCHECK_VERSION)

# go test runs as many packages at once as there are cores, which is right for this repository too:
# tests that start the CLI take turns across packages by themselves.
TESTFLAGS ?= -race -timeout=40m

.PHONY: help demo test lint fmt api docs release bench microbench soak mutate picture pictures setup
.DEFAULT_GOAL := help

help: ## print this list
	@awk -F ':[^#]*## ' '/^[a-z]+:.*## / { printf "make %-11s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

demo: setup ## have an agent review a bundled project; without a key a script answers (DROVER_DEMO=script: always)
	@DROVER_COMMAND='$(GO) run ./cmd/drover' $(GO) run ./cmd/drover demo

test: setup lint ## check everything that must hold before a change is merged
	@$(GO) run ./tools/testsum $(TESTFLAGS) ./...

# Full sizes: DROVER_SOAK=1 is what tests look at (internal/testkit). Then every fuzz target for a
# while; minimising is kept short, because it stalls on targets that write files.
FUZZTIME ?= 30s
soak: setup ## run the tests in their full sizes, and each fuzz target for a while
	@DROVER_SOAK=1 $(GO) run ./tools/testsum -race -timeout=4h -count=1 ./...
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep '^Fuzz'); do \
	    echo "fuzz      $$pkg $$target"; \
	    $(GO) test -run='^$$' -fuzz="^$$target\$$" -fuzztime=$(FUZZTIME) -fuzzminimizetime=10x $$pkg >$(CURDIR)/.drover/fuzz.log 2>&1 || { cat $(CURDIR)/.drover/fuzz.log; exit 1; }; \
	    grep 'fuzz: elapsed' $(CURDIR)/.drover/fuzz.log | tail -1; \
	  done; \
	done

# One table of Drover beside its peers, workspaces beside cp and git, and evaluations beside the CLI; then what single packages cost.
bench: setup ## measure the client beside its peers, as one table
	@$(GO) run ./bench/cmd/wirebench
	@$(GO) test -run='^$$' -bench='Beside|InATransaction' -benchtime=10x ./workspace >$(CURDIR)/.drover/bench.log 2>&1 || { cat $(CURDIR)/.drover/bench.log; exit 1; }
	@$(GO) test -run='^$$' -bench='Evaluate|FreshConversation' -benchtime=9x . ./agent/claudecode >>$(CURDIR)/.drover/bench.log 2>&1 || { cat $(CURDIR)/.drover/bench.log; exit 1; }
	@$(GO) test -run='^$$' -bench='^BenchmarkPage$$' -benchtime=1x ./server >>$(CURDIR)/.drover/bench.log 2>&1 || { cat $(CURDIR)/.drover/bench.log; exit 1; }
	@$(GO) test -run='^$$' -bench='^BenchmarkWatch$$' -benchtime=1x ./server >>$(CURDIR)/.drover/bench.log 2>&1 || { cat $(CURDIR)/.drover/bench.log; exit 1; }
	@grep '^Benchmark' $(CURDIR)/.drover/bench.log

microbench: setup ## measure single packages
	@$(GO) test -run='^$$' -bench=. -benchmem ./...

# Mutations are in tools/mutate/mutations. The checkout is not changed.
mutate: setup ## break each promise on purpose and see its test fail (MUTATE="-run name": some of them)
	@$(GO) run ./tools/mutate $(MUTATE)

picture: setup ## draw the picture of README again, from a run of the demo
	@$(GO) test ./cmd/drover -run '^TestDemo_Picture$$' -update

pictures: setup ## make the pictures of the page in docs again, from a run of the demo
	@$(GO) run ./tools/pictures

setup: ## install the pinned CLI, and bubblewrap, socat, tmux and Chromium where possible
	@$(GO) run ./tools/setup

lint: $(GOLANGCI) $(STATICCHECK) ## check formatting, vet for three systems, linters, modules, the API listing
	@unformatted="$$(gofmt -l .)"; \
	  if [ -n "$$unformatted" ]; then echo "not formatted (make fmt): $$unformatted"; exit 1; fi
	@$(GOLANGCI) fmt --diff ./... >/dev/null || { echo "not formatted as gofumpt does (make fmt)"; exit 1; }
	@for os in linux darwin windows; do GOOS=$$os $(GO) vet ./... || exit 1; done
	@$(GO) mod tidy -diff
	@$(GO) mod verify >/dev/null
	@$(GOLANGCI) run ./...
	@$(STATICCHECK) ./...
	@$(GO) run ./tools/apilist -check
	@echo "lint      ok"

fmt: $(GOLANGCI) ## format all Go files
	@$(GOLANGCI) fmt ./...

api: ## rewrite the API listing after a change that is meant
	@$(GO) run ./tools/apilist

docs: ## write the documentation as HTML with a search into dist/docs, links checked
	@$(GO) run ./tools/site

release: ## build the released files of VERSION into dist/VERSION (VERSION=0.2.0)
	@$(GO) run ./tools/release '$(VERSION)'

# Built once per version; the version in the file name makes a new pin build anew.
$(GOLANGCI):
	@echo "set-up    golangci-lint $(GOLANGCI_VERSION) (a minute or so, once)"
	@GOBIN=$(TOOLS)/new $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	@mv $(TOOLS)/new/golangci-lint $@

$(STATICCHECK):
	@echo "set-up    staticcheck $(STATICCHECK_VERSION)"
	@GOBIN=$(TOOLS)/new $(GO) install honnef.co/go/tools/cmd/staticcheck@$(STATICCHECK_VERSION)
	@mv $(TOOLS)/new/staticcheck $@
