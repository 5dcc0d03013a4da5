# Onggi: `make run` builds and starts the server, `make test` proves the tree, `make test-long STAGE=...` proves it for hours.
CARGO ?= cargo
ARGS ?=

.PHONY: help run build test test-long stages

help:
	@echo 'make run                   build and start the server on 127.0.0.1:6379, data in ./data (ARGS="--port 7000" to change)'
	@echo 'make test                  all stages, each timed; installs what they need'
	@echo 'make test STAGE="a b"      only these stages'
	@echo 'make test-long STAGE=name  the long form of one stage; started again, it goes on where it stopped (PIECE="sync errors": these pieces)'
	@echo 'make stages                what the stages are'

build:
	$(CARGO) build --release --locked --bin onggi

run: build
	@mkdir -p data
	exec $${CARGO_TARGET_DIR:-target}/release/onggi serve --dir ./data --http-port 9121 $(ARGS)

test:
	@tests/run $(STAGE)

test-long:
	@tests/run --long --piece "$(PIECE)" $(STAGE)

stages:
	@tests/run --list
