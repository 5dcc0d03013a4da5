# Onggi: `make run` builds and starts the server, `make test` proves the tree, `make test-long STAGE=...` proves it for hours.
CARGO ?= cargo
ARGS ?=
PREFIX ?= /usr/local
DESTDIR ?=
TARGET ?=
BUILT = $(or $(CARGO_TARGET_DIR),target)$(if $(TARGET),/$(TARGET))
BINARY ?= $(BUILT)/release/onggi
# How to build for arm64 elsewhere, and to run what was built: packages ask the program for its pages.
ifeq ($(TARGET),aarch64-unknown-linux-gnu)
export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER ?= aarch64-linux-gnu-gcc
export CC_aarch64_unknown_linux_gnu ?= aarch64-linux-gnu-gcc
export SYSROOT ?= /usr/aarch64-linux-gnu
export EMULATOR ?= qemu-aarch64 -L $(SYSROOT)
export OBJCOPY = aarch64-linux-gnu-objcopy
endif
RUN = $(EMULATOR) $(BINARY)
SHARE = $(DESTDIR)$(PREFIX)/share

.PHONY: help run build install install-files deb image release site test test-long stages

help:
	@echo 'make run                   build and start the server on 127.0.0.1:6379, data in ./data (ARGS="--port 7000" to change)'
	@echo 'make install               program, manual pages and completions into PREFIX ($(PREFIX))'
	@echo 'make deb                   packages for Debian in target/package: the program, and its debug symbols'
	@echo 'make image                 a container image in target/package: an archive for docker load or podman load'
	@echo 'make release               archives of the program and its debug symbols, a list of components, checksums'
	@echo 'make deb|image|release TARGET=aarch64-unknown-linux-gnu   for arm64, by gcc-aarch64-linux-gnu and qemu-user'
	@echo 'make site                  the documentation as a site in target/site'
	@echo 'make test                  all stages, each timed; installs what they need'
	@echo 'make test STAGE="a b"      only these stages'
	@echo 'make test-long STAGE=name  the long form of one stage; started again, it continues where it stopped (PIECE="sync errors": these pieces)'
	@echo 'make stages                what the stages are'

build:
	$(CARGO) build --release --locked --bin onggi $(if $(TARGET),--target $(TARGET))

run: build
	@mkdir -p data
	exec $(RUN) serve --dir ./data $(ARGS)

install: build install-files

install-files:
	install -D -m 755 $(BINARY) $(DESTDIR)$(PREFIX)/bin/onggi
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions
	install -d $(SHARE)/fish/vendor_completions.d
	install -D -m 644 LICENSE $(SHARE)/doc/onggi/copyright
	for page in $$($(RUN) man --list); do $(RUN) man $${page#onggi-} | gzip -9n > $(SHARE)/man/man1/$$page.1.gz || exit 1; done
	$(RUN) completions bash > $(SHARE)/bash-completion/completions/onggi
	$(RUN) completions zsh > $(SHARE)/zsh/site-functions/_onggi
	$(RUN) completions fish > $(SHARE)/fish/vendor_completions.d/onggi.fish

deb: build
	@packaging/deb $(BINARY) $(or $(CARGO_TARGET_DIR),target)/package

image: build
	@packaging/image $(BINARY) $(or $(CARGO_TARGET_DIR),target)/package

release: build
	@packaging/release $(BINARY) $(or $(CARGO_TARGET_DIR),target)/package

site:
	@packaging/site $(or $(CARGO_TARGET_DIR),target)/site

test:
	@tests/run $(STAGE)

test-long:
	@tests/run --long --piece "$(PIECE)" $(STAGE)

stages:
	@tests/run --list
