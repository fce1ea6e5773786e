"""``deploy/kubernetes/``: what is applied is valid, and its parts fit each other."""

import re
from ipaddress import IPv4Network
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
SECRETS = {"database": "postgresql://petstore@db/petstore", "redis": "redis://valkey:6379"}


def resource(name: str) -> dict[str, Any]:
    found: dict[str, Any] = read_yaml(f"kubernetes/{name}.yaml")
    return found


DEPLOYMENT = resource("deployment")["spec"]
LABELS = DEPLOYMENT["template"]["metadata"]["labels"]
POD = DEPLOYMENT["template"]["spec"]
(CONTAINER,) = POD["containers"]
PORTS = {port["name"]: port["containerPort"] for port in CONTAINER["ports"]}
PROBES = ("startupProbe", "livenessProbe", "readinessProbe")


def settings() -> Settings:
    variables = {}
    for variable in CONTAINER["env"]:
        reference = variable.get("valueFrom", {}).get("secretKeyRef")
        variables[variable["name"]] = SECRETS[reference["key"]] if reference else variable["value"]
    return settings_of(image_settings() | variables)


def check(described: dict[str, Any]) -> None:
    """Refuse what Kubernetes would: a wrong type, and a field that is missing or unknown."""
    assert msgspec.to_builtins(codecs.from_dict(described)) == described
    metadata = described["metadata"]
    msgspec.convert([metadata["labels"], metadata.get("annotations", {})], list[dict[str, str]])


@pytest.mark.parametrize("name", FILES)
def test_each_manifest_matches_its_schema(name: str) -> None:
    check(resource(name.removesuffix(".yaml")))


def test_the_pod_template_matches_its_schema() -> None:
    check({"apiVersion": "v1", "kind": "Pod", **DEPLOYMENT["template"]})


@pytest.mark.parametrize(
    "change",
    [
        {"replicaz": 2},
        {"paused": "yes"},
        {"template": None},
        {"strategy": {"rollingUpdate": {"maxSurge": [1]}}},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_mistake_fails_validation(change: dict[str, Any]) -> None:
    described = resource("deployment")
    described["spec"] |= change
    with pytest.raises((msgspec.ValidationError, AssertionError)):
        check(described)


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
    assert all(selector == LABELS for selector in selectors)
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


def test_every_named_port_exists() -> None:
    named = [port["targetPort"] for port in resource("service")["spec"]["ports"]]
    named += [CONTAINER[probe]["httpGet"]["port"] for probe in PROBES]
    rules = resource("network-policy")["spec"]["ingress"]
    named += [port["port"] for rule in rules for port in rule["ports"]]
    assert set(named) == set(PORTS)


def test_the_probes_request_paths_of_the_service(server: ServerProcess) -> None:
    paths = [CONTAINER[probe]["httpGet"]["path"] for probe in PROBES]
    assert paths == ["/readyz", "/healthz", "/readyz"]
    for path in paths:
        assert httpx.get(f"{server.url}{path}").status_code == 200


def test_the_termination_grace_period_exceeds_the_shutdown_timeout() -> None:
    found = settings()
    probe = CONTAINER["readinessProbe"]
    noticed = probe["periodSeconds"] * probe["failureThreshold"] + probe["timeoutSeconds"]
    assert noticed < found.drain_timeout < found.shutdown_timeout - 1
    assert found.shutdown_timeout < POD["terminationGracePeriodSeconds"]


def test_some_pods_are_always_available() -> None:
    replicas = resource("autoscaler")["spec"]["minReplicas"]
    assert replicas > resource("disruption-budget")["spec"]["maxUnavailable"]
    assert DEPLOYMENT["strategy"]["rollingUpdate"]["maxUnavailable"] == 0
    assert "replicas" not in DEPLOYMENT
    # A node can be drained while the database is down.
    assert resource("disruption-budget")["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_the_autoscaler_has_a_metric_and_the_database_takes_all_its_pods() -> None:
    found = settings()
    # While an update is rolled out, there is one more.
    pods = resource("autoscaler")["spec"]["maxReplicas"] + 1
    assert pods * found.workers * found.database_connections <= POSTGRES_CONNECTIONS
    (metric,) = resource("autoscaler")["spec"]["metrics"]
    assert metric["resource"]["name"] in CONTAINER["resources"]["requests"]


def test_a_pod_has_no_more_rights_than_it_needs() -> None:
    (user,) = words_of(image_stages()[-1], "USER")
    assert POD["securityContext"]["runAsNonRoot"]
    assert POD["securityContext"]["runAsUser"] == int(user)
    assert CONTAINER["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert not POD["automountServiceAccountToken"]
    writable = [mount for mount in CONTAINER["volumeMounts"] if not mount.get("readOnly")]
    assert [mount["mountPath"] for mount in writable] == ["/tmp"]  # noqa: S108


def test_the_secret_of_webhooks_is_where_the_service_looks_for_it() -> None:
    (mount,) = (mount for mount in CONTAINER["volumeMounts"] if mount.get("readOnly"))
    (volume,) = (each["secret"] for each in POD["volumes"] if each["name"] == mount["name"])
    (item,) = volume["items"]
    assert settings().secret_path == Path(mount["mountPath"]) / item["path"]
    (group,) = {POD["securityContext"]["fsGroup"], POD["securityContext"]["runAsGroup"]}
    assert group == POD["securityContext"]["runAsUser"]
    assert volume["defaultMode"] == 0o440  # of root and this group, for Kubernetes owns the files


def test_the_page_creates_every_key_of_the_secret() -> None:
    page = (DEPLOY.parent / "docs/deploying.md").read_text()
    created = set(re.findall(r"--from-literal=(\w+)=", page))
    read = {
        each["valueFrom"]["secretKeyRef"]["key"] for each in CONTAINER["env"] if "valueFrom" in each
    }
    volumes = [each["secret"] for each in POD["volumes"] if "secret" in each]
    assert created == read | {item["key"] for volume in volumes for item in volume["items"]}


def test_temporary_files_of_a_pod_are_on_a_disk() -> None:
    mounted = {mount["mountPath"]: mount["name"] for mount in CONTAINER["volumeMounts"]}
    (volume,) = (each for each in POD["volumes"] if each["name"] == mounted["/tmp"])  # noqa: S108
    assert list(volume["emptyDir"]) == ["sizeLimit"]


def test_no_proxy_is_trusted_until_an_overlay_names_the_ingress() -> None:
    documentation = IPv4Network("192.0.2.0/24")  # RFC 5737: nobody is in it
    (network,) = settings().trusted_networks
    assert isinstance(network, IPv4Network)
    assert network.subnet_of(documentation)
