"""Of a module is read what validate may read, nothing else, and nothing of it is touched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from steelyard.errors import VerifierError
from steelyard.verifiers.terraform import tree as terraform_tree
from steelyard.verifiers.terraform.tree import ModuleSnapshot, install_requirements, read_module_snapshot, version_files


def written(root: Path, files: dict[str, str]) -> Path:
    for name, content in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    return root


def modules(manifest: bytes) -> dict[str, tuple[str, str]]:
    return {entry["Key"]: (entry["Source"], entry["Dir"]) for entry in json.loads(manifest)["Modules"]}


def tree(**files: str) -> ModuleSnapshot:
    return ModuleSnapshot(".", {name.replace("__", "/") + ".tf": text.encode() for name, text in files.items()})


# ---- reading


def test_a_module_is_read_with_what_lies_below_it_and_what_it_names_elsewhere(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        {
            "live/app/main.tf": 'module "net" {\n  source = "../../modules/net"\n}\n',
            "live/app/user.tpl": "hello",
            "live/app/policies/one.json": "{}",
            "live/app/text.tf": 'locals {\n  a = file("${path.module}/../shared/a.txt")\n}\n',
            "live/shared/a.txt": "a",
            "live/shared/b.txt": "not named",
            "live/other/main.tf": "other",
            "modules/net/main.tf": 'module "sub" {\n  source = "../sub"\n}\n',
            "modules/net/deep/x.txt": "below",
            "modules/sub/main.tf": "",
            "modules/unused/main.tf": "",
        },
    )
    found = read_module_snapshot(root, "live/app")
    assert (found.folder, found.left_out) == ("live/app", ())
    assert sorted(found.files) == [
        "live/app/main.tf",
        "live/app/policies/one.json",
        "live/app/text.tf",
        "live/app/user.tpl",
        "live/shared/a.txt",
        "modules/net/deep/x.txt",
        "modules/net/main.tf",
        "modules/sub/main.tf",
    ]


def test_a_module_above_is_read_without_the_others_beside_it(tmp_path: Path) -> None:
    root = written(
        tmp_path,
        {
            "main.tf": 'module "a" {\n  source = "./modules/a"\n}\n',
            "modules/a/main.tf": "",
            "modules/b/main.tf": "",
            "examples/one/main.tf": 'module "all" {\n  source = "../.."\n}\n',
            "examples/two/main.tf": "",
        },
    )
    assert sorted(read_module_snapshot(root, "examples/one").files) == [
        "examples/one/main.tf",
        "main.tf",
        "modules/a/main.tf",
    ]


def test_state_settings_programs_and_repositories_are_not_read(tmp_path: Path) -> None:
    unread = [
        ".git/config",
        ".terraformrc",
        ".tofurc",
        "terraform.tfstate",
        "a.tfstate.backup",
        "terraform.d/plugins/x",
    ]
    unread += [
        "terraform-provider-x_v1",
        "terraform-provisioner-x",
        ".terraform/environment",
        "sub/.terraform/x",
        "tests/a.tftest.hcl",
    ]
    root = written(tmp_path, {"main.tf": "", ".tflint.hcl": "", **dict.fromkeys(unread, "x")})
    assert sorted(read_module_snapshot(root).files) == [".tflint.hcl", "main.tf"]


def test_links_are_followed_within_the_repository_and_never_out_of_it(tmp_path: Path) -> None:
    outside = written(tmp_path / "outside", {"secret.tf": "secret", "folder/x.tf": "secret"})
    root = written(tmp_path / "root", {"app/main.tf": 'locals { a = "../common" }', "common/variables.tf": "shared"})
    (root / "app" / "variables.tf").symlink_to("../common/variables.tf")
    (root / "app" / "secret.tf").symlink_to(outside / "secret.tf")
    (root / "app" / "folder").symlink_to(outside / "folder")
    (root / "app" / "again").symlink_to(root / "app")
    (root / "app" / "dangling.tf").symlink_to("nowhere")
    found = read_module_snapshot(root, "app")
    assert found.files["app/variables.tf"] == b"shared"
    assert found.left_out == ("app/folder", "app/secret.tf")
    assert sorted(found.files) == ["app/main.tf", "app/variables.tf", "common/variables.tf"]
    with pytest.raises(VerifierError, match="no folder of a module"):
        read_module_snapshot(root, "../outside")
    (root / "way-out").symlink_to(outside)
    with pytest.raises(VerifierError, match="no folder of a module"):
        read_module_snapshot(root, "way-out")


def test_what_is_no_plain_file_is_not_opened(tmp_path: Path) -> None:
    written(tmp_path, {"main.tf": ""})
    os.mkfifo(tmp_path / "waits.tf")
    assert list(read_module_snapshot(tmp_path).files) == ["main.tf"]


def test_what_is_too_large_is_left_out_and_remembered(tmp_path: Path) -> None:
    written(tmp_path, {"main.tf": ""})
    (tmp_path / "big.bin").write_bytes(bytes(terraform_tree.MAX_MODULE_FILE_BYTES + 1))
    assert read_module_snapshot(tmp_path).left_out == ("big.bin",)
    (tmp_path / "big.tf").write_bytes(bytes(terraform_tree.MAX_MODULE_FILE_BYTES + 1))
    with pytest.raises(VerifierError, match=r"big\.tf is too large"):
        read_module_snapshot(tmp_path)


@pytest.mark.parametrize("folder", ["nowhere", "main.tf", "empty"])
def test_a_folder_without_a_module_is_an_error(tmp_path: Path, folder: str) -> None:
    written(tmp_path, {"main.tf": "", "empty/readme.md": ""})
    with pytest.raises(VerifierError, match=r"no folder of a module|no Terraform files"):
        read_module_snapshot(tmp_path, folder)


def test_providers_that_were_installed_are_known_by_where_they_really_lie(tmp_path: Path) -> None:
    cache = tmp_path / "cache" / "registry.terraform.io/hashicorp/aws/3.39.0/linux_amd64"
    cache.mkdir(parents=True)
    root = written(tmp_path / "root", {"main.tf": "", ".terraform.lock.hcl": "lock"})
    place = ".terraform/providers/registry.terraform.io/hashicorp/aws/3.39.0/linux_amd64"
    (root / place).parent.mkdir(parents=True)
    (root / place).symlink_to(cache)
    found = read_module_snapshot(root)
    assert found.packages == {place: str(cache.resolve())}
    assert sorted(found.files) == [".terraform.lock.hcl", "main.tf"]


def test_names_are_those_that_validate_has_for_files(tmp_path: Path) -> None:
    root = written(tmp_path, {"live/app/main.tf": 'module "n" { source = "../net" }', "live/net/main.tf": "net"})
    found = read_module_snapshot(root, "live/app")
    assert found.path("main.tf") == "live/app/main.tf"
    assert found.path("../net/main.tf") == "live/net/main.tf"
    assert found.sources({"main.tf": "new"}) == {"main.tf": "new", "../net/main.tf": "net"}
    for name in ("../../../etc/passwd", "/etc/passwd", "../.."):
        with pytest.raises(VerifierError, match="not a file in the repository"):
            found.path(name)


def test_what_only_a_repair_names_is_read_for_it(tmp_path: Path) -> None:
    root = written(tmp_path, {"app/main.tf": "", "net/main.tf": "net", "net/text.txt": "text", "other/main.tf": ""})
    found = read_module_snapshot(root, "app")
    assert sorted(found.files) == ["app/main.tf"]
    repaired = 'module "net" {\n  source = "../net"\n}\n'
    own = version_files(found, {"main.tf": repaired})
    assert own == {"app/main.tf": repaired.encode(), "net/main.tf": b"net", "net/text.txt": b"text"}
    assert modules(install_requirements(found, own).manifest)["net"] == ("../net", "../net")


# ---- what a version needs


def test_local_modules_are_written_down_as_init_does_it(tmp_path: Path) -> None:
    found = install_requirements(
        tree(
            main='module "a" { source = "./a" }\n# module "no" { source = "./b" }\nmodule "again" {\n  source = "./a/"\n}\n',
            a__main='module "b" {\n  # source = "./no"\n  x      = 1\n  source = "../b"\n}\n',
            b__main="",
        )
    )
    assert modules(found.manifest) == {
        "": ("", "."),
        "a": ("./a", "a"),
        "a.b": ("../b", "b"),
        "again": ("./a/", "a"),
        "again.b": ("../b", "b"),
    }
    assert found.absent == frozenset()


def test_modules_are_found_in_a_file_whose_syntax_is_broken() -> None:
    broken = 'module "a" {\n  source = "./a"\n}\n\nlocals {\n  b =\n}\n'
    assert "a" in modules(install_requirements(tree(main=broken, a__main="")).manifest)


def test_modules_are_found_in_json(tmp_path: Path) -> None:
    text: dict[str, Any] = {
        "module": [{"a": {"source": "./a"}}, {"b": [{"source": "./a"}]}],
        "resource": {"aws_vpc": {}},
    }
    text["terraform"] = [{"required_providers": {"cloud": {"source": "acme/sky"}}}]
    files = {"main.tf.json": json.dumps(text).encode(), "a/main.tf": b"", "broken.tf.json": b"[[["}
    found = install_requirements(ModuleSnapshot(".", files))
    assert sorted(modules(found.manifest)) == ["", "a", "b"]
    assert found.providers == {"hashicorp/aws", "acme/sky"}


def test_a_module_that_calls_itself_comes_to_an_end() -> None:
    found = modules(
        install_requirements(tree(main='module "a" { source = "./a" }', a__main='module "a" { source = "." }')).manifest
    )
    assert terraform_tree.MAX_MODULE_NESTING < len(found) < terraform_tree.MAX_MODULE_NESTING + 3


def test_a_module_is_written_down_once_and_a_folder_that_is_not_there_without_a_place() -> None:
    calls = 'module "a" { source = "./a" }\nmodule "a" { source = "./b" }\nmodule "c" { source = "./c" }\n'
    found = install_requirements(ModuleSnapshot(".", {"main.tf": calls.encode(), "a/main.tf": b"", "b/readme.md": b""}))
    assert modules(found.manifest) == {"": ("", "."), "a": ("./b", "b"), "c": ("./c", "")}
    assert len(json.loads(found.manifest)["Modules"]) == 3


def test_modules_from_elsewhere_are_there_only_if_they_were_installed() -> None:
    main = 'module "vpc" {\n  source  = "terraform-aws-modules/vpc/aws"\n}\nmodule "git" {\n  source = "git::https://x/y"\n}\n'
    entry = {"Key": "vpc", "Source": "registry.terraform.io/terraform-aws-modules/vpc/aws", "Version": "3.0.0"}
    entry["Dir"] = ".terraform/modules/vpc"
    manifest: dict[str, Any] = {"Modules": [{"Key": "", "Source": "", "Dir": "."}, entry, "junk", {"Key": 1}]}
    files = {
        "main.tf": main.encode(),
        terraform_tree.MODULES_MANIFEST_FILE: json.dumps(manifest).encode(),
        ".terraform/modules/vpc/main.tf": b'module "own" {\n  source = "./own"\n}\n',
        ".terraform/modules/vpc/own/main.tf": b"",
    }
    found = install_requirements(ModuleSnapshot(".", files))
    assert found.absent == {"git::https://x/y"}
    assert sorted(modules(found.manifest)) == ["", "vpc", "vpc.own"]
    assert install_requirements(
        ModuleSnapshot(".", {**files, terraform_tree.MODULES_MANIFEST_FILE: b"junk"})
    ).absent == {
        "git::https://x/y",
        "terraform-aws-modules/vpc/aws",
    }


def test_providers_are_known_by_their_addresses_whatever_they_are_called() -> None:
    main = """
terraform {
  required_providers {
    cloud  = { source = "acme/sky", version = "~> 3.0" }
    random = {
      version = "1.0"
      source  = "hashicorp/random"
    }
    old = "~> 1.0"
  }
}
provider "google" {}
resource "aws_vpc" "main" {}
data "null_data_source" "x" {}
data "terraform_remote_state" "state" {}
"""
    more = 'resource "cloud_thing" "x" {}\nresource "random_id" "x" {}\n'
    own = {f"hashicorp/{name}" for name in ("random", "old", "google", "aws", "null")}
    assert install_requirements(tree(main=main, more=more)).providers == {"acme/sky", *own}


def test_versions_that_need_the_same_providers_share_what_is_installed() -> None:
    main = 'provider "aws" {}\nresource "aws_vpc" "a" {}\n'
    first, second, third = (
        install_requirements(tree(main=text)).settled
        for text in (main, f'{main}resource "aws_vpc" "b" {{}}\n', main.replace("{}", '{\n  version = "2"\n}', 1))
    )
    assert first == second != third
