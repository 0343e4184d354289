# make run and make test set up everything they need; `make help` lists the targets of daily work.

UV := tools/uv
VENV := .venv
BIN := $(VENV)/bin
ENGINE ?= direct
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help install run trial test test-slow test-real test-browser oracle soak test-package test-newest test-deploy test-e2e mutants breaks check lint advisories docs goldens rule format site pictures lock bench bench-memory scale clean \
	deploy remove deployer-policy invoke invoke-local event logs local-aws package parquet-layer template release check-template elasticmq dynamodb-local

help: ## list these targets
	@grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

# An environment from uv.lock: $(call environment,FOLDER,EXTRAS AND GROUPS). PYTHON=python3.12 chooses the interpreter.
environment = UV_PROJECT_ENVIRONMENT=$(1) $(UV) sync --quiet --frozen --no-install-project $(if $(PYTHON),--python $(PYTHON)) $(2)
editable = $(UV) pip install --quiet --python $(1)/bin/python --no-deps --no-build-isolation --editable .
ENGINES := --extra aioboto3 --extra crc64
DEVELOPMENT := --extra demo --extra sql --group dev

$(VENV)/.installed: uv.lock pyproject.toml
	@echo "1/3 uv" && $(UV) --version >/dev/null
	@echo "2/3 the packages of uv.lock, into $(VENV)" && $(call environment,$(VENV),$(ENGINES) $(DEVELOPMENT))
	@echo "3/3 the auditor, from this folder" && $(call editable,$(VENV))
	@touch $@

install: $(VENV)/.installed ## set up .venv; the command is then .venv/bin/auditor; [PYTHON=python3.12]

run: install ## the whole audit on an AWS inside the process; or BUCKET=s3://...
ifdef BUCKET
	@$(BIN)/auditor audit $(BUCKET) --engine $(ENGINE) $(ARGS) || \
		{ code=$$?; echo "the audit's exit code is $$code (make gives its own): see docs/cli.md" >&2; exit $$code; }
else
	@$(BIN)/auditor demo --engine $(ENGINE) $(ARGS)
endif

# audit and probe one bucket of yours, and write trial.json, which names nothing; [ARGS="--vantage ADDRESS --as PROFILE"]
trial: install
	@$(BIN)/python -m tools.trial "$(or $(BUCKET),$(error give BUCKET=s3://..))" $(ARGS)

# Without bytecode each worker would compile every test anew, and every process that a test starts the package.
unexport PYTHONDONTWRITEBYTECODE

# Four workers on two cores: the tests of retries and deadlines mostly wait.
FAST_TESTS := $(BIN)/python -m pytest -q -n 4 --dist worksteal --ignore=tests/system --ignore=tests/browser

test: install ## the tests that need no server but our own, within minutes; a room's alone: ROOM=verdict
	@$(FAST_TESTS) -m 'not slow' $(if $(ROOM),tests/$(ROOM)) $(ARGS)

test-slow: install ## the tests of the same kind that take longest
	@$(FAST_TESTS) -m slow $(ARGS)

# the tests against Ceph RGW, DynamoDB Local and ElasticMQ (each skipped, with a word, where it is missing)
test-real: install
	@$(BIN)/python -m pytest -q tests/system/real $(ARGS)

# compare the verdict with its oracle on 110,000 random cases, in two processes; [FIRST=1000000] [LAST=1100000] [CASES=usual|large|laws]
oracle: install
	@$(BIN)/python -m tests.verdict.oracle.compare --processes 2 --cases $(or $(CASES),usual) $(or $(FIRST),1000000) $(or $(LAST),1100000)
	@$(if $(FIRST),,$(BIN)/python -m tests.verdict.oracle.compare --processes 2 2000000 2010000)

# minutes of kill -9, a campaign against twenty hashing workers, objects of gigabytes; SOAK_SEED=7 for others
soak: install
	@$(BIN)/python -m pytest -q tests/system/soak $(ARGS)

# the pages in headless Chromium: console, requests, axe-core, keyboard, print; skipped without chromium
test-browser: install .venv-browser/.installed tests/browser/node_modules/.installed
	@.venv-browser/bin/python -m pytest -q -p no:cacheprovider tests/browser $(ARGS)

# the built wheel in an environment of its own
test-package: install
	@$(BIN)/python -m pytest -q tests/system/packaging $(ARGS)

# What reads S3 by an SDK, and what checks a request against its model.
NEWEST := tests/system/newest tests/s3/engines tests/s3/test_bucket.py tests/s3/test_bucket_settings.py tests/audit/test_run_facts.py \
	tests/audit/test_customer_key_block.py tests/hashing/test_run.py tests/cli/test_inventory.py

# the engines direct and boto3 on the newest botocore, which aioboto3 refuses
test-newest: install .venv-newest/.installed
	@.venv-newest/bin/python -m pytest -q -n 4 --dist worksteal -p no:cacheprovider -m 'not slow' $(NEWEST) $(ARGS)

# change the code and see whether a test notices; [SAMPLE=600] [SEED=1] [MODULES="auditor/verify .."] [ARGS=--again]
mutants: install .venv-mutants/.installed
	@.venv-mutants/bin/python -m tests.mutants.sample $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(ARGS) $(MODULES)

# break the product as tests/mutants/breaks.toml lists, one break at a time, and see whether its tests notice; [MODULES="auditor/verify .."]
breaks: install
	@$(BIN)/python -m tests.mutants.breaks $(MODULES)

check: lint test ## format, lint, types, imports, documents in step, tests

# the fast half of check, for pre-commit
lint: install
	@$(BIN)/ruff format --check --quiet . || { echo "run make format"; exit 1; }
	@$(BIN)/ruff check --quiet .
	@$(BIN)/mypy
	@out=$$($(BIN)/lint-imports --no-logo 2>&1) || { echo "$$out"; exit 1; }
	@$(BIN)/python -m tools.documents --check

# known advisories on each package of the locks: of Python's from OSV, of npm's from its registry
advisories:
	@$(UV) audit --frozen --preview-features audit-command
	@for folder in . tests/browser; do npm audit --package-lock-only --prefix $$folder || exit 1; done

docs: install ## write the generated documents anew (docs/rules.md, docs/cli.md, docs/configuration.md)
	@$(BIN)/python -m tools.documents

# write the expected texts anew: of each format, from one run with hostile keys; of odd results' lines; of pages; of whole runs
goldens: install
	@$(BIN)/python -m tests.offline.formats.golden_files
	@$(BIN)/python -m tests.reports.lines.golden_lines
	@$(BIN)/python -m tests.reports.page.golden_pages
	@AWS_ACCESS_KEY_ID=testing AWS_SECRET_ACCESS_KEY=testing $(BIN)/python -m tests.audit.golden_runs

# begin a rule: its file, its cases, its line in RULES; ID=o12 GROUP=access NAME=everyone_write
rule: install
	@$(BIN)/python -m tests.rules.new_rule "$(ID)" "$(GROUP)" "$(NAME)"
	@$(MAKE) --no-print-directory docs

format: install ## format the code and sort the imports
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

# the site of docs/, into .build/site; PROJECT_URL= the repository, for links to its files. The theme would advertise its successor.
site: .venv-site/.installed
	@NO_MKDOCS_2_WARNING=1 .venv-site/bin/mkdocs --quiet build --strict $(ARGS)

# take the pictures of the page in docs/ anew
pictures: install .venv-browser/.installed
	@.venv-browser/bin/python -m tests.browser.pictures

lock: ## write uv.lock from pyproject.toml, and requirements.txt, its part with all engines; newer packages: ARGS=--upgrade
	@$(UV) lock --quiet --default-index https://pypi.org/simple $(ARGS)
	@$(UV) export --quiet --frozen --no-header --no-emit-project $(ENGINES) -o requirements.txt

# Deploying. STAGE=local deploys to `make local-aws`, and to nothing else.
STAGE ?= prod
LEVEL ?=
PARAMS ?=
ARCHITECTURE ?= arm64
SLS := node_modules/.bin/serverless
export NODE_NO_WARNINGS = 1
given = $(if $(BUCKETS),--param buckets=$(BUCKETS)) $(if $(LEVEL),--param level=$(LEVEL)) $(PARAMS)
local = AWS_ENDPOINT_URL="$${AWS_ENDPOINT_URL:-$$(cat .build/local-aws.url 2>/dev/null)}" AWS_ACCESS_KEY_ID=testing \
	AWS_SECRET_ACCESS_KEY=testing AWS_REGION=us-east-1 AWS_DEFAULT_REGION=us-east-1 NO_PROXY=127.0.0.1
aws = $(if $(filter local,$(STAGE)),$(local))
named = $(if $(FUNCTION),--function $(FUNCTION)) $(if $(EVENT),--event "$(EVENT)")
# These commands need a bucket's name, and do nothing to it.
any = --param buckets=$(or $(BUCKETS),any-bucket) --param level=$(or $(LEVEL),fixity)
ifdef REGION
export AWS_REGION = $(REGION)
endif
ifdef AWS_REGION
# What knows only the other one.
export AWS_DEFAULT_REGION = $(AWS_REGION)
endif
ifneq ($(filter --region --region=% -r --aws-profile --aws-profile=%,$(PARAMS)),)
$(error PARAMS reach osls alone, and make invoke would look elsewhere: give REGION=.. or AWS_PROFILE=.. instead)
endif

node_modules/.installed: package-lock.json
	@command -v npm >/dev/null || { echo "deploying needs Node 20.19 or later, with npm"; exit 1; }
	@npm ci --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

.venv-deploy/.installed: uv.lock
	@echo "Setting up .venv-deploy, an AWS on this machine: once"
	@$(call environment,.venv-deploy,--only-group deploy)
	@touch $@

.venv-browser/.installed: uv.lock
	@echo "Setting up .venv-browser, with playwright: once"
	@$(call environment,.venv-browser,$(ENGINES) $(DEVELOPMENT) --group browser) && $(call editable,.venv-browser)
	@touch $@

tests/browser/node_modules/.installed: tests/browser/package-lock.json
	@command -v npm >/dev/null || { echo "axe-core needs npm"; exit 1; }
	@cd tests/browser && npm ci --no-audit --no-fund --loglevel=error >/dev/null
	@touch $@

.venv-site/.installed: uv.lock
	@echo "Setting up .venv-site, with mkdocs: once"
	@$(call environment,.venv-site,--only-group site)
	@touch $@

.venv-newest/.installed: uv.lock
	@echo "Setting up .venv-newest, with the newest boto3: once"
	@$(call environment,.venv-newest,--extra crc64 $(DEVELOPMENT) --group newest)
	@touch $@

.venv-mutants/.installed: uv.lock
	@echo "Setting up .venv-mutants, with mutmut: once"
	@$(call environment,.venv-mutants,$(ENGINES) $(DEVELOPMENT) --group mutants) && $(call editable,.venv-mutants)
	@touch $@

deploy: install node_modules/.installed ## deploy; BUCKETS=my-bucket [LEVEL=exposure|metadata|fixity] [STAGE=local]
	@$(aws) $(SLS) deploy --stage $(STAGE) $(given)
	@$(if $(filter local,$(STAGE)),$(aws) $(BIN)/python -m tools.local_aws --take-over)

remove: node_modules/.installed ## remove what was deployed, but for the ledger and the reports; STAGE=prod, asks; CONFIRM=prod does not ask
	@test "$(origin STAGE)" != file || { echo "name the stage to remove: make remove STAGE=prod" >&2; exit 2; }
	@test "$(STAGE)" = local || test "$(CONFIRM)" = "$(STAGE)" || { \
		printf 'This removes the stack s3-auditor-%s, its queues and their messages. Type its stage to go on: ' "$(STAGE)" >&2; \
		read -r answer; test "$$answer" = "$(STAGE)" || { echo "nothing was removed" >&2; exit 2; }; }
	@$(aws) $(SLS) remove --stage $(STAGE) $(any) $(PARAMS)

# print the IAM policy of who deploys; [LEVEL=fixity] [STAGE=prod]
deployer-policy: install node_modules/.installed
	@$(SLS) package --stage $(STAGE) $(any) $(PARAMS) >&2
	@$(BIN)/python -m deploy.deployer --stage $(STAGE)

invoke: install ## audit now, and wait for the end; BUCKET=my-bucket [PREFIX=photos/] [FUNCTION=verify] [STAGE=local]; or EVENT=event.json
	@$(aws) $(BIN)/python -m deploy.invoke --stage $(STAGE) $(named) --bucket "$(BUCKET)" --prefix "$(PREFIX)"

invoke-local: STAGE = local
# run a handler here on make local-aws, nothing deployed; EVENT=events/schedule.json [FUNCTION=verify]
invoke-local: install
	@$(BIN)/python -m deploy.build --local
	@$(local) $(BIN)/python -m deploy.invoke --stage local --undeployed $(named) --bucket "$(BUCKET)" --prefix "$(PREFIX)"

# print an event of a kind in events/ for your object; KIND=s3-notification BUCKET=.. KEY=.. [STAGE=local]
event: install
	@$(aws) $(BIN)/python -m deploy.events --kind "$(KIND)" --bucket "$(BUCKET)" --key "$(KEY)" --prefix "$(PREFIX)" --run "$(RUN)"

# a function's log; [FUNCTION=hashing] [STAGE=local]
logs: node_modules/.installed
	@$(aws) $(SLS) logs --function $(or $(FUNCTION),audit) --stage $(STAGE) $(any)

local-aws: install .venv-deploy/.installed ## an AWS on this machine to deploy to, until Ctrl-C
	@.venv-deploy/bin/python -m tools.local_aws

# the functions' zip; ARCHITECTURE=arm64|x86_64
package: install
	@$(BIN)/python -m deploy.build --architecture $(ARCHITECTURE)

# the layer with DuckDB of PARAMS='--param parquet=true'; ARCHITECTURE=arm64|x86_64
parquet-layer: install
	@$(BIN)/python -m deploy.parquet --architecture $(ARCHITECTURE)

# the plain CloudFormation template, in .build/template.json
template: install node_modules/.installed
	@$(SLS) package --stage $(STAGE) $(given)
	@$(BIN)/python -m deploy.template --output .build/template.json

release: install node_modules/.installed ## sdist and wheel, zips, templates that take the buckets, bill of materials, formula, in dist/; [PROJECT_URL=..] [TAG=v1.2.3]
	@version=$$($(BIN)/python -c 'from auditor.model.version import VERSION; print(VERSION)'); \
		test "$${TAG:-v$$version}" = "v$$version" || { echo "the tag is not v$$version, the version of the code" >&2; exit 2; }
	@rm -rf dist && mkdir -p dist
	@$(UV) build --quiet --no-build-isolation --python $(BIN)/python --out-dir dist
	@for architecture in arm64 x86_64; do \
		$(BIN)/python -m deploy.build --architecture $$architecture --output dist/function-$$architecture.zip || exit 1; \
	done
	@for level in exposure metadata fixity; do for architecture in arm64 x86_64; do \
		$(SLS) package --stage $(STAGE) --param buckets=buckets-of-the-parameter --param bucketAlarms=false \
			--param level=$$level --param architecture=$$architecture $(PARAMS) >/dev/null && \
		$(BIN)/python -m deploy.template --buckets-parameter --output dist/template-$$level-$$architecture.json || exit 1; \
	done; done
	@cp deploy/member-role.yml dist/
	@$(if $(PROJECT_URL),$(BIN)/python -m tools.formula --home "$(PROJECT_URL)" dist/*.tar.gz > dist/s3-auditor.rb)
	@$(UV) export --quiet --frozen --format cyclonedx1.5 --extra crc64 --group newest > dist/sbom.cdx.json
	@rm -f dist/*.stamp dist/.gitignore && cd dist && sha256sum -- * > SHA256SUMS && cat SHA256SUMS

# A file by one worker: its tests share the templates and packages that they make.
# template, roles and packages, with osls and the checkers
test-deploy: install node_modules/.installed .venv-deploy/.installed
	@PATH="$(CURDIR)/.venv-deploy/bin:$$PATH" $(BIN)/python -m pytest -q -n 2 --dist loadfile tests/system/deploy $(ARGS)

# Two workers, each with a deployment and a local AWS of its own: the functions mostly wait, for deadlines and queues.
# deploy to a local AWS and run it as Lambda does
test-e2e: install node_modules/.installed .venv-deploy/.installed
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal tests/system/e2e $(ARGS)

# fetch ElasticMQ, on which test-real then tries the worker; needs Maven and Java 17
elasticmq: .build/elasticmq/.fetched

.build/elasticmq/.fetched: tests/system/real/elasticmq.xml
	@command -v mvn >/dev/null && command -v java >/dev/null || { echo "ElasticMQ needs Maven and Java 17"; exit 1; }
	@mvn -B -q -C -f tests/system/real/elasticmq.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/.build/elasticmq
	@touch $@

# fetch DynamoDB Local, on which test-real then tries the ledger; needs Maven and Java 17
dynamodb-local: .build/dynamodb-local/.fetched

.build/dynamodb-local/.fetched: tests/system/real/dynamodb-local.xml
	@command -v mvn >/dev/null && command -v java >/dev/null || { echo "DynamoDB Local needs Maven and Java 17"; exit 1; }
	@mvn -B -q -C -f tests/system/real/dynamodb-local.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/.build/dynamodb-local
	@touch $@

# the template under cfn-lint and checkov, at each level
check-template: install node_modules/.installed .venv-deploy/.installed
	@for level in exposure metadata fixity; do \
		out=.build/template-$$level; \
		$(SLS) package --stage prod --param buckets=photos --param level=$$level --package $$out >/dev/null && \
		.venv-deploy/bin/cfn-lint --non-zero-exit-code informational -r us-east-1 cn-north-1 us-gov-west-1 \
			-t $$out/cloudformation-template-*-stack.json && \
		$(UV) tool run --quiet --from 'checkov>=3.2' checkov --quiet --compact --config-file deploy/checkov.yml \
			-f $$out/cloudformation-template-update-stack.json && echo "$$level: clean" || exit 1; \
	done
	@$(UV) tool run --quiet --from 'checkov>=3.2' checkov --quiet --compact --config-file deploy/checkov.yml -f deploy/member-role.yml

bench: install ## measure it all and write docs/performance.md; QUICK=1 minutes, in .build/bench; PART=engines a part
	@$(BIN)/python -m benchmarks $(if $(PART),--part $(PART)) $(if $(QUICK),--quick) $(ARGS)

# peak memory alone, of whole audits of 10,000 to 1,000,000 objects; QUICK=1: fewer
bench-memory: install
	@$(BIN)/python -m benchmarks --part memory $(if $(QUICK),--quick) $(ARGS)

# simulate nights of 10^6 to 10^10 objects for docs/scale.md; or one: ARGS="--objects 3e8 --mode mixed"
scale: install
	@$(BIN)/python -m benchmarks.scale $(ARGS)

# remove what was set up
clean:
	@rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .venv-deploy .venv-mutants .venv-browser .venv-newest .venv-site .build/site .build/uv mutants
