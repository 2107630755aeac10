"""Whom to ask and how: settings file and environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from steelyard.errors import InputError
from steelyard.evalsets.starter import starter_settings
from steelyard.records import SuiteRule
from steelyard.settings import Settings, SuiteSettings, load, read_env_file, resolve_provider


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "steelyard.toml"
    path.write_text(text)
    return path


def test_without_a_file_the_defaults_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert load(None, {}) == (Settings(), [])


def test_the_starter_file_loads_without_a_warning(tmp_path: Path) -> None:
    settings, problems = load(written(tmp_path, starter_settings()), {})
    assert problems == []
    assert settings.max_retries == 3


def test_values_come_from_the_environment_where_the_file_says_so(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        '[providers.local]\ntype = "openai"\nbase_url = "http://x/v1"\napi_key = "${KEY}"\nheaders = { a = "${TEAM}" }\n',
    )
    settings, _ = load(path, {"KEY": "k", "TEAM": "evals"})
    assert settings.providers["local"].api_key == "k"
    assert settings.providers["local"].headers == {"a": "evals"}
    # a provider that is not asked needs nothing
    half, _ = load(path, {"KEY": "k"})
    with pytest.raises(InputError, match="environment variable TEAM, which is not set"):
        resolve_provider("local/m", half, {"KEY": "k"})
    resolve_provider("local/m", half, {"KEY": "k"}, asks=False)


def test_general_keys_that_slipped_into_a_provider_are_used_with_a_warning(tmp_path: Path) -> None:
    path = written(
        tmp_path, '[providers.openai]\napi_key = "k"\ndefault_model = "gpt-5"\nmax_retries = 7\nbase_rul = "x"\n'
    )
    settings, problems = load(path, {})
    assert (settings.default_model, settings.max_retries) == ("gpt-5", 7)
    assert "default_model is inside [providers.openai]" in str(problems[0])
    assert 'did you mean "base_url"?' in str(problems[2])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = [", "not TOML"),
        (f"x = 1{'0' * 5000}", "not TOML"),
        ("x = " + "[" * 50_000, "not TOML"),
        ("providers = 3", "must be tables"),
        ("[providers]\nopenai = 3", "must be a table"),
        ('[providers.x]\ntype = "opnai"', 'did you mean "openai"?'),
        ('max_retries = "three"', "max_retries"),
        ("suites = 3", "suites must be a table, [suites]"),
        ('[suites]\nlatency_limit = "long"', "suites.latency_limit"),
        ('[suites]\npenalties = { refusal = "low" }', "suites.penalties"),
        ('[prices."a/b"]\ninput = "much"\noutput = 1', "prices"),
    ],
)
def test_a_wrong_file_is_told_in_a_sentence(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputError, match=r"steelyard\.toml") as caught:
        load(written(tmp_path, text), {})
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("model", "environment", "name", "rest", "url"),
    [
        ("openai/gpt-5", {"OPENAI_API_KEY": "k"}, "openai", "gpt-5", "https://api.openai.com/v1"),
        ("openai:org/model", {"OPENAI_API_BASE": "http://h/v1"}, "openai", "org/model", "http://h/v1"),
        ("ollama/qwen3:8b", {"OLLAMA_HOST": "0.0.0.0:11434"}, "ollama", "qwen3:8b", "http://127.0.0.1:11434/v1"),
        ("vllm/m", {}, "vllm", "m", "http://127.0.0.1:8000/v1"),
        ("anthropic/c", {"ANTHROPIC_BASE_URL": "http://a"}, "anthropic", "c", "http://a"),
        ("replay:runs/x/y.jsonl", {}, "replay", "runs/x/y.jsonl", ""),
    ],
)
def test_a_model_is_split_at_the_first_mark_and_reached_as_the_environment_says(
    model: str, environment: dict[str, str], name: str, rest: str, url: str
) -> None:
    found = resolve_provider(model, Settings(), environment)
    assert (found[0], found[1], found[2].base_url) == (name, rest, url)


def test_a_hosted_provider_without_a_key_is_found_out_before_anyone_is_asked() -> None:
    with pytest.raises(InputError, match="set GROQ_API_KEY"):
        resolve_provider("groq/llama", Settings(), {})


OPENAI_KEY = {"OPENAI_API_KEY": "sk-environment"}
OWN_BLOCK = '[providers.own]\ntype = "openai"\nbase_url = "http://own/v1"\napi_key = "sk-own"\nheaders = { x-key = "sk-head" }\n'


@pytest.mark.parametrize(
    ("text", "model", "environment", "base_url", "sent"),
    [
        ("", "openai/m", {}, "", "sk-environment"),
        ("", "openai/m", {"OPENAI_BASE_URL": "http://own/v1"}, "", "sk-environment"),
        ("", "openai/m", {"OPENAI_BASE_URL": "http://own/v1/"}, "http://own/v1", "sk-environment"),
        ("", "openai/m", {}, "https://api.openai.com/v1/", "sk-environment"),
        ("", "openai/m", {}, "http://elsewhere/v1", ""),
        ("", "openai/m", {"OPENAI_BASE_URL": "http://own/v1"}, "http://own/v1.elsewhere", ""),
        ('[providers.x]\ntype = "openai"\nbase_url = "http://elsewhere/v1"', "x/m", {}, "", ""),
        ('[providers.openai]\nbase_url = "http://elsewhere/v1"', "openai/m", {}, "", ""),
        (
            '[providers.openai]\nbase_url = "http://h/v1"\napi_key = "${OPENAI_API_KEY}"',
            "openai/m",
            {},
            "",
            "sk-environment",
        ),
        ('[providers.x]\ntype = "openai-completions"\nbase_url = "http://elsewhere/v1"', "x/m", {}, "", ""),
        ('[providers.x]\ntype = "openai"', "x/m", {}, "", "sk-environment"),
        (OWN_BLOCK, "own/m", {}, "", "sk-own sk-head"),
        (OWN_BLOCK, "own/m", {}, "http://elsewhere/v1", ""),
    ],
)
def test_a_key_goes_only_to_the_address_that_it_belongs_to(
    tmp_path: Path, text: str, model: str, environment: dict[str, str], base_url: str, sent: str
) -> None:
    there = {**OPENAI_KEY, **environment}
    settings, _ = load(written(tmp_path, text), there)
    _, _, reached = resolve_provider(model, settings, there, base_url)
    assert " ".join(filter(None, (reached.api_key, *reached.headers.values()))) == sent


def test_the_starter_settings_send_no_key_to_a_server_that_they_suggest(tmp_path: Path) -> None:
    block = starter_settings().split("# [providers.local]")[1].split("# ...")[0]
    block = "[providers.local]" + block.replace("\n# ", "\n")
    there = {**OPENAI_KEY, "LOCAL_API_KEY": "sk-local"}
    settings, problems = load(written(tmp_path, block), there)
    assert not problems
    assert resolve_provider("local/m", settings, there)[2].api_key == "sk-local"


def test_a_model_without_a_provider_takes_the_default_one() -> None:
    assert resolve_provider("gpt-5", Settings(default_provider="vllm"), {})[:2] == ("vllm", "gpt-5")
    with pytest.raises(InputError, match="say who offers it"):
        resolve_provider("gpt-5", Settings(), {})


def test_a_file_of_keys_does_not_override_what_is_set(tmp_path: Path) -> None:
    path = tmp_path / ".env"
    path.write_text("# keys\nexport A='one two'\nB = 2\n\nC=\"x=y\"\n")
    environment = {"B": "set"}
    read_env_file(path, environment)
    assert environment == {"A": "one two", "B": "set", "C": "x=y"}
    path.write_text("A=1\nnonsense\n")
    with pytest.raises(InputError, match=r"\.env:2: not NAME=value"):
        read_env_file(path, {})


def test_the_file_says_how_suites_are_scored_and_leaves_the_rest_to_the_run(tmp_path: Path) -> None:
    text = "[suites]\npenalties = { refusal = 0.25, fail = 1 }\nlatency_limit = 20\nweight = 3\n"
    settings, problems = load(written(tmp_path, text), {})
    assert settings.suites == SuiteSettings(penalties={"refusal": 0.25, "fail": 1.0}, latency_limit=20.0)
    assert (settings.suites.weights, settings.suites.latency_target) == (None, None)
    assert [str(problem).partition(": ")[2] for problem in problems] == [
        'unknown key "weight" in [suites] (known: latency_limit, latency_target, penalties, weights; did you mean "weights"?)'
    ]
    assert set(SuiteSettings.__struct_fields__) == set(SuiteRule.__struct_fields__)


@pytest.mark.parametrize(
    ("model", "environment", "url", "key"),
    [
        ("gemini/g", {"GOOGLE_API_KEY": "k"}, "https://generativelanguage.googleapis.com/v1beta", "k"),
        (
            "bedrock/m",
            {"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"},
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            "a:s",
        ),
        (
            "bedrock/m",
            {"AWS_REGION": "eu-west-1", "AWS_BEARER_TOKEN_BEDROCK": "b"},
            "https://bedrock-runtime.eu-west-1.amazonaws.com",
            "b",
        ),
        (
            "azure/d",
            {"AZURE_OPENAI_ENDPOINT": "https://r.example", "AZURE_OPENAI_API_KEY": "k", "OPENAI_API_VERSION": "1"},
            "https://r.example?api-version=1",
            "k",
        ),
        (
            "azure/d",
            {"AZURE_OPENAI_ENDPOINT": "https://r.example", "AZURE_OPENAI_API_KEY": "k"},
            "https://r.example",
            "k",
        ),
        ("llama.cpp/m", {}, "http://127.0.0.1:8080/v1", ""),
    ],
)
def test_the_environment_says_where_large_providers_are_and_who_asks(
    model: str, environment: dict[str, str], url: str, key: str
) -> None:
    reached = resolve_provider(model, Settings(), environment)[2]
    assert (reached.base_url, reached.api_key) == (url, key)
    elsewhere = resolve_provider(model, Settings(), environment, "https://elsewhere.example")[2]
    assert elsewhere.api_key == ""


def test_a_region_that_would_lead_elsewhere_is_not_put_into_an_address() -> None:
    environment = {"AWS_REGION": "evil.example/", "AWS_BEARER_TOKEN_BEDROCK": "b"}
    assert resolve_provider("bedrock/m", Settings(), environment)[2].base_url == ""


@pytest.mark.parametrize("line", ['base_url = "${K}"', 'region = "${K}"', 'stream = "${K}"'])
def test_a_key_that_stands_where_an_address_belongs_is_not_shown(tmp_path: Path, line: str) -> None:
    path = written(tmp_path, f'[providers.x]\ntype = "openai"\n{line}\n')
    with pytest.raises(InputError) as caught:
        load(path, {"K": "sk-verysecret-1234"})
    assert "verysecret" not in str(caught.value)
    address = written(tmp_path, '[providers.x]\ntype = "ollama"\nbase_url = "${K}"\n')
    assert load(address, {"K": "127.0.0.1:11434"})[0].providers["x"].base_url == "127.0.0.1:11434"
