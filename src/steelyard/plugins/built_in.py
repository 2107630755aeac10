"""The parts that come with steelyard, by kind and name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

PluginKind = Literal["evalsets", "outcomes", "pools", "providers", "reports", "verifiers"]
"""The seams; the entry points of `providers`, for example, are the group `steelyard.providers`."""

BUILT_IN_PLUGINS: Mapping[PluginKind, Mapping[str, str]] = {
    "evalsets": {
        "arrow": "steelyard.evalsets.rows:arrow_drafts",
        "csv": "steelyard.evalsets.rows:csv_drafts",
        "json": "steelyard.evalsets.documents:json_drafts",
        "jsonl": "steelyard.evalsets.jsonl:drafts",
        "parquet": "steelyard.evalsets.rows:parquet_drafts",
        "toml": "steelyard.evalsets.toml:drafts",
        "yaml": "steelyard.evalsets.documents:yaml_drafts",
    },
    "outcomes": {
        "bigcodebench": "steelyard.outcomes.readers.code_benchmarks:BigCodeBenchReader",
        "counts": "steelyard.outcomes.readers.counts:CountTableReader",
        "deepeval": "steelyard.outcomes.readers.scored_tests:DeepEvalReader",
        "evalplus": "steelyard.outcomes.readers.code_benchmarks:EvalPlusReader",
        "every-eval-ever": "steelyard.outcomes.readers.scored_tests:EveryEvalEverReader",
        "fixes": "steelyard.outcomes:fixes",
        "harbor": "steelyard.outcomes.readers.agent_benchmarks:HarborReader",
        "human-eval": "steelyard.outcomes.readers.code_benchmarks:HumanEvalReader",
        "inspect": "steelyard.outcomes.readers.inspect:InspectReader",
        "junit": "steelyard.outcomes.readers.counts:JUnitReader",
        "livecodebench": "steelyard.outcomes.readers.code_benchmarks:LiveCodeBenchReader",
        "lm-eval": "steelyard.outcomes.readers.lm_eval:LmEvalReader",
        "multipl-e": "steelyard.outcomes.readers.code_benchmarks:MultiPLEReader",
        "promptfoo": "steelyard.outcomes.readers.promptfoo:PromptfooReader",
        "scores": "steelyard.outcomes.readers.scored_tests:ScoredRowsReader",
        "scylla": "steelyard.outcomes.readers.scylla:ScyllaReader",
        "swe-bench": "steelyard.outcomes.readers.agent_benchmarks:SweBenchReader",
        "table": "steelyard.outcomes:table",
    },
    "pools": {
        "local": "steelyard.engine.pool:local_pool",
        "ray": "steelyard.engine.ray.pool:opened",
    },
    "providers": {
        "agent": "steelyard.providers.agent.provider:connect",
        "anthropic": "steelyard.providers.formats.anthropic:connect",
        "azure": "steelyard.providers.formats.azure:connect",
        "bedrock": "steelyard.providers.formats.bedrock:connect",
        "command": "steelyard.providers.command:connect",
        "gemini": "steelyard.providers.formats.gemini:connect",
        "http": "steelyard.providers.formats.http:connect",
        "ollama": "steelyard.providers.formats.openai:connect",
        "openai": "steelyard.providers.formats.openai:connect",
        "openai-completions": "steelyard.providers.formats.completions:connect",
        "openai-responses": "steelyard.providers.formats.responses:connect",
        "pydantic-ai": "steelyard.providers.pydantic_ai:connect",
        "python": "steelyard.providers.command:connect_function",
        "replay": "steelyard.providers.replay:connect",
    },
    "reports": {
        "csv": "steelyard.reports.exports.attempt_rows:csv_report",
        "evalplus": "steelyard.reports.exports.attempt_rows:evalplus_report",
        "every-eval-ever": "steelyard.reports.exports.every_eval_ever:report",
        "forgetest": "steelyard.reports.exports.forgetest:report",
        "html": "steelyard.reports.html:report",
        "human-eval": "steelyard.reports.exports.attempt_rows:human_eval_report",
        "inspect": "steelyard.reports.exports.inspect_log:report",
        "json": "steelyard.reports.json:report",
        "junit": "steelyard.reports.junit:report",
        "markdown": "steelyard.reports.markdown:report",
        "otlp": "steelyard.reports.exports.otlp:report",
        "promptfoo": "steelyard.reports.exports.promptfoo:report",
        "results": "steelyard.reports.exports.attempt_rows:results_report",
        "sarif": "steelyard.reports.sarif:report",
    },
    "verifiers": {
        "checks": "steelyard.verifiers.checks.verifier:ChecksVerifier",
        "command": "steelyard.verifiers.command.verifier:CommandVerifier",
        "function": "steelyard.verifiers.function:FunctionVerifier",
        "python": "steelyard.verifiers.python.verifier:PythonVerifier",
        "response": "steelyard.verifiers.response.verifier:ResponseVerifier",
        "rust": "steelyard.verifiers.rust.verifier:RustVerifier",
        "scripted-checks": "steelyard.verifiers.checks.verifier:ScriptedChecksVerifier",
        "terraform": "steelyard.verifiers.terraform.verifier:TerraformVerifier",
    },
}
"""The entry points of pyproject.toml again, so that our own parts are found without a scan of everything installed."""

BUILT_IN_SUFFIXES: Mapping[PluginKind, Mapping[str, str]] = {
    "evalsets": {
        ".toml": "toml",
        ".jsonl": "jsonl",
        ".jsonl.gz": "jsonl",
        ".json": "json",
        ".yaml": "yaml",
        ".yml": "yaml",
        ".csv": "csv",
        ".parquet": "parquet",
        ".arrow": "arrow",
    },
    "reports": {
        ".json": "json",
        ".md": "markdown",
        ".html": "html",
        ".csv": "csv",
        ".xml": "junit",
        ".sarif": "sarif",
        ".jsonl": "results",
        ".eee.json": "every-eval-ever",
        ".inspect.json": "inspect",
        ".promptfoo.json": "promptfoo",
        ".forgetest.json": "forgetest",
        ".otlp.json": "otlp",
        ".evalplus.jsonl": "evalplus",
        ".human-eval.jsonl": "human-eval",
    },
}
"""Which of our parts a file's suffix asks for."""
