"""``deploy/kubernetes/``: what is applied is valid, and its parts fit each other."""

import re
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
from lightkube import codecs

from petstore import __version__
from petstore.settings import Settings
from support.deploy_files import (
    DEPLOY,
    POSTGRES_CONNECTIONS,
    image_settings,
    image_stages,
    read_yaml,
    settings_of,
    words_of,
)
from support.process import ServerProcess

FILES = [
    path.name
    for path in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
    if path.name != "kustomization.yaml"
]


def resource(name: str) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(f"kubernetes/{name}.yaml")
    return found


DEPLOYMENT = resource("deployment")["spec"]
POD = DEPLOYMENT["template"]["spec"]
(CONTAINER,) = POD["containers"]
PORTS = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}


def settings() -> Settings:
    secrets = {"database": "postgresql://petstore@db/petstore", "redis": "redis://valkey:6379"}
    variables = {}
    for variable in CONTAINER["env"]:
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        variables[variable["name"]] = secrets[reference["key"]] if reference else variable["value"]
    return settings_of(image_settings() | variables)


def check(described: dict[str, Any]) -> None:
    """Refuse what Kubernetes would: a wrong type, and a field that is missing or unknown."""
    assert msgspec.to_builtins(codecs.from_dict(described)) == described
    metadata = described["metadata"]
    msgspec.convert([metadata["labels"], metadata.get("annotations", {})], list[dict[str, str]])


@pytest.mark.parametrize("name", FILES)
def test_each_manifest_matches_its_schema(name: str) -> None:
    check(resource(name.removesuffix(".yaml")))
    check({"apiVersion": "v1", "kind": "Pod", **DEPLOYMENT["template"]})


def test_every_manifest_is_applied_with_the_version_of_this_source() -> None:
    assert sorted(resource("kustomization")["resources"]) == FILES
    (image,) = resource("kustomization")["images"]
    assert image == {"name": CONTAINER["image"], "newTag": __version__}


def test_every_selector_selects_the_same_pods() -> None:
    selectors = [
        DEPLOYMENT["selector"]["matchLabels"],
        resource("service")["spec"]["selector"],
        resource("disruption-budget")["spec"]["selector"]["matchLabels"],
        resource("network-policy")["spec"]["podSelector"]["matchLabels"],
        POD["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"],
    ]
    assert all(selector == DEPLOYMENT["template"]["metadata"]["labels"] for selector in selectors)
    scaled = resource("autoscaler")["spec"]["scaleTargetRef"]
    assert (scaled["kind"], scaled["name"]) == (
        "Deployment",
        resource("deployment")["metadata"]["name"],
    )


def test_the_settings_are_valid_and_urls_are_in_secrets() -> None:
    found = settings()
    assert {"http": found.port, "metrics": found.metrics_port} == PORTS
    secret = {variable["name"] for variable in CONTAINER["env"] if "valueFrom" in variable}
    assert secret == {"PETSTORE_DATABASE", "PETSTORE_REDIS"}
    annotations = DEPLOYMENT["template"]["metadata"]["annotations"]
    assert annotations["prometheus.io/port"] == str(found.metrics_port)
    # No proxy is trusted until an overlay names the ingress: this network is empty (RFC 5737).
    (network,) = found.trusted_networks
    assert str(network).startswith("192.0.2.")


def test_the_probes_request_paths_of_the_service_and_every_named_port_exists(
    server: ServerProcess,
) -> None:
    probes = [CONTAINER[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
    assert [probe["path"] for probe in probes] == ["/readyz", "/healthz", "/readyz"]
    for probe in probes:
        assert httpx.get(f"{server.url}{probe['path']}").status_code == 200
    named = [probe["port"] for probe in probes]
    named += [port["targetPort"] for port in resource("service")["spec"]["ports"]]
    rules = resource("network-policy")["spec"]["ingress"]
    named += [port["port"] for rule in rules for port in rule["ports"]]
    assert set(named) == set(PORTS)


def test_the_termination_grace_period_exceeds_the_shutdown_timeout() -> None:
    found = settings()
    probe = CONTAINER["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    assert noticed < found.drain_timeout < found.shutdown_timeout - 1
    assert found.shutdown_timeout < POD["terminationGracePeriodSeconds"]


def test_some_pods_are_always_available_and_the_database_takes_all_of_them() -> None:
    scaled, found = resource("autoscaler")["spec"], settings()
    budget = resource("disruption-budget")["spec"]
    assert scaled["minReplicas"] > budget["maxUnavailable"]
    assert DEPLOYMENT["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert "replicas" not in DEPLOYMENT
    # A node can be drained while the database is down.
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"
    # While an update is rolled out, there is one more.
    pods = scaled["maxReplicas"] + 1
    assert pods * found.workers * found.database_connections <= POSTGRES_CONNECTIONS
    (metric,) = scaled["metrics"]
    assert metric["resource"]["name"] in CONTAINER["resources"]["requests"]


def test_a_pod_has_no_more_rights_than_it_needs_and_temporary_files_on_a_disk() -> None:
    (user,) = words_of(image_stages()[-1], "USER")
    assert POD["securityContext"]["runAsNonRoot"]
    assert POD["securityContext"]["runAsUser"] == int(user)
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not POD["automountServiceAccountToken"]
    assert not POD["enableServiceLinks"]  # the variables of the Service would be taken for settings
    (writable,) = (mount for mount in CONTAINER["volumeMounts"] if not mount.get("readOnly"))
    assert writable["mountPath"] == "/tmp"  # noqa: S108
    (volume,) = (each for each in POD["volumes"] if each["name"] == writable["name"])
    assert list(volume["emptyDir"]) == ["sizeLimit"]


def test_the_secret_of_webhooks_is_where_the_service_looks_for_it() -> None:
    (mount,) = (mount for mount in CONTAINER["volumeMounts"] if mount.get("readOnly"))
    (volume,) = (each["secret"] for each in POD["volumes"] if each["name"] == mount["name"])
    (item,) = volume["items"]
    assert settings().secret_path == Path(mount["mountPath"]) / item["path"]
    user, group, files = (
        POD["securityContext"][name] for name in ("runAsUser", "runAsGroup", "fsGroup")
    )
    assert user == group == files
    assert volume["defaultMode"] == 0o440  # of root and this group, for Kubernetes owns the files
    page = (DEPLOY.parent / "docs/deploying.md").read_text()  # it creates every key of the secret
    variables = [each["valueFrom"] for each in CONTAINER["env"] if "valueFrom" in each]
    read = {variable["secretKeyRef"]["key"] for variable in variables}
    assert {*re.findall(r"--from-literal=(\w+)=", page)} == read | {item["key"]}
