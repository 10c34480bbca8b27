"""The catalog: every entry reads as what it is, and every number has its source."""

from typing import Any

import pytest

from models import catalog
from models.hardware import Accelerator, Cpu
from models.llm import Llm
from models.resolve import resolve

ENTRIES = [(kind, name) for kind in catalog.KINDS for name in catalog.names(kind)]
WITHOUT_SOURCE = {"name", "vendor", "kind", "scale_up", "duplex", "accelerator", "sources"}


def entry(kind: str, name: str) -> dict[str, Any]:
    found = catalog.entry(kind, name)
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        ("accelerators", "A100-SXM-80GB A100-PCIe-40GB H20-SXM5-96GB H100-SXM-80GB H200-SXM-141GB B200 L40S MI300X"),
        ("servers", "DGX-A100-80GB HGX-H100 HGX-H200 HGX-B200 HGX-H20"),
        ("models", "Qwen3-8B Qwen3-32B Qwen3-32B-FP8 Qwen3-235B-A22B DeepSeek-V3 Llama-3.1-8B Llama-3.1-70B"),
        ("models", "Mixtral-8x22B gemma-3-27b-it gpt-oss-120b Qwen3-Next-80B-A3B-Instruct"),
        ("cpus", "Xeon-Platinum-8452Y"),
        ("links", "NIC-10G NIC-25G NIC-50G NIC-100G NIC-200G NIC-400G NVLink-3 NVLink-4 NVLink-5 PCIe-4 PCIe-5"),
    ],
)
def test_the_catalog_holds_what_is_promised(kind: str, names: str) -> None:
    assert set(names.split()) <= set(catalog.names(kind))


@pytest.mark.parametrize(("kind", "name"), ENTRIES)
def test_every_number_has_a_source(kind: str, name: str) -> None:
    found = entry(kind, name)
    assert found["name"] == name
    if kind == "models":
        assert found["source"]
        assert found["repository"]
        return
    assert set(found["sources"]) == set(found) - WITHOUT_SOURCE
    assert all(isinstance(text, str) and len(text) > 10 for text in found["sources"].values())


@pytest.mark.parametrize("name", catalog.names("accelerators"))
def test_accelerators_read_as_such_and_are_realistic(name: str) -> None:
    card = Accelerator.model_validate(entry("accelerators", name))
    assert card.usable_memory == 0.9
    assert card.compute["bf16"] >= 1e14
    assert card.scale_up in catalog.names("links")


@pytest.mark.parametrize("name", catalog.names("cpus"))
def test_cpus_read_as_such_and_read_their_own_memory_faster(name: str) -> None:
    cpu = Cpu.model_validate(entry("cpus", name))
    assert cpu.remote_bandwidth < cpu.bandwidth
    assert all(1e11 <= reached <= 1e14 for reached in cpu.kernels.values())


@pytest.mark.parametrize("name", catalog.names("models"))
def test_models_read_as_shapes(name: str) -> None:
    resolved, problems = resolve({"models": {"m": {"catalog": name}}})
    assert not problems
    llm = Llm.model_validate(resolved["models"]["m"])
    expected = {None: "bf16", "fp8": "fp8", "mxfp4": "int4"}
    assert llm.weights == expected[(llm.quantization_config or {}).get("quant_method")]


@pytest.mark.parametrize("name", catalog.names("servers"))
def test_servers_name_entries_that_exist(name: str) -> None:
    server = entry("servers", name)
    assert server["accelerator"] in catalog.names("accelerators")
    assert server["scale_up"] in catalog.names("links")
    assert server.get("nics", {"link": "NIC-400G"})["link"] in catalog.names("links")
    assert server.get("drives", {"storage": "D7-P5520-3.84TB"})["storage"] in catalog.names("storage")


@pytest.mark.parametrize("name", catalog.names("links"))
def test_links_lose_something_to_protocol(name: str) -> None:
    assert 0.0 < entry("links", name)["link_efficiency"] < 1.0
