"""Make the plain CloudFormation template, for deployments without Node: `python -m deploy.template`.

It is the template of osls without the deployment bucket. Two parameters name the place of the packages instead.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from deploy.limits import INLINE

MADE: Final = Path(".serverless") / "cloudformation-template-update-stack.json"
_DESCRIPTION: Final = (
    "S3 auditor: who can read each object, how it is protected, and whether its bytes are what they were"
)
_BUCKET: Final = "ServerlessDeploymentBucket"
_OF_OSLS: Final = (_BUCKET, "DependenciesLambdaLayer", "ParquetLambdaLayer")
_PARAMETERS: Final = {
    "CodeBucket": {"Type": "String", "Description": "The bucket, in this region, that the package was uploaded to"},
    "CodeKey": {"Type": "String", "Description": "The package's key in it"},
}
_LAYERS: Final = {
    "DependenciesLambdaLayer": ("LayerKey", "The key in it of the layer with the dependencies"),
    "ParquetLambdaLayer": ("ParquetLayerKey", "The key in it of the layer with DuckDB"),
}
"""By a layer's name in osls' template: the parameter that has its key, and what that says."""
PLACEHOLDER: Final = "buckets-of-the-parameter"
"""The name of the one bucket of a template that is to take the buckets as a parameter."""
_PARTITIONS: Final = {"InChina": "aws-cn", "InGovCloud": "aws-us-gov"}
"""Conditions by which the ARNs of a list of buckets are chosen: a join takes no partition between the names."""
_BUCKETS: Final = {
    "Buckets": {
        "Type": "CommaDelimitedList",
        "AllowedPattern": "^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$",
        "Description": "The audited buckets, whole ones, separated by commas",
    }
}


def plain(template: dict[str, Any]) -> dict[str, Any]:
    """Turn osls' template into one that needs no osls. Raises ValueError if a part of osls is left."""
    resources = {
        name: _with_code(name, one) for name, one in template["Resources"].items() if not name.startswith(_BUCKET)
    }
    layers = {
        key: {"Type": "String", "Description": words} for name, (key, words) in _LAYERS.items() if name in resources
    }
    made = {
        "AWSTemplateFormatVersion": template["AWSTemplateFormatVersion"],
        "Description": _DESCRIPTION,
        "Parameters": {**_PARAMETERS, **layers, **template["Parameters"]},
        "Conditions": template["Conditions"],
        "Resources": resources,
        "Outputs": {name: one for name, one in template["Outputs"].items() if not name.startswith(_OF_OSLS)},
    }
    if _BUCKET in json.dumps(made):
        raise ValueError(f"the template still names {_BUCKET}")
    return made


def with_buckets(template: Mapping[str, Any]) -> dict[str, Any]:
    """Turn a plain template of the one bucket PLACEHOLDER into one that takes the buckets as a parameter.

    Raises ValueError if the template does not name it, or names it in a place that takes no list.
    """
    made: dict[str, Any] = _listed(dict(template))
    if PLACEHOLDER in json.dumps(made) or made == template:
        raise ValueError(f"the template cannot take its buckets as a parameter: package it for {PLACEHOLDER} alone")
    conditions = {
        name: {"Fn::Equals": [{"Ref": "AWS::Partition"}, partition]} for name, partition in _PARTITIONS.items()
    }
    return {
        **made,
        "Parameters": {**_BUCKETS, **made["Parameters"]},
        "Conditions": {**made["Conditions"], **conditions},
    }


def _listed(value: Any) -> Any:
    if value == PLACEHOLDER:
        return {"Fn::Join": [",", {"Ref": "Buckets"}]}
    if isinstance(value, dict):
        return {name: _listed(one) for name, one in value.items()}
    if not isinstance(value, list):
        return value
    if value == [PLACEHOLDER]:
        return {"Ref": "Buckets"}
    for tail in ("", "/*"):
        if value == [_arn({"Ref": "AWS::Partition"}, f"{PLACEHOLDER}{tail}")]:
            china, gov = ({"Fn::If": [name, _arns(one, tail)]} for name, one in _PARTITIONS.items())
            gov["Fn::If"].append(_arns("aws", tail))
            china["Fn::If"].append(gov)
            return china
    return [_listed(one) for one in value]


def _arn(partition: Any, resource: Any) -> dict[str, Any]:
    return {"Fn::Join": ["", ["arn:", partition, ":s3:::", resource]]}


def _arns(partition: str, tail: str) -> dict[str, Any]:
    """Return the list of the buckets' ARNs: their names joined by what stands between two of them, and split."""
    joined = {"Fn::Join": [f"{tail},arn:{partition}:s3:::", {"Ref": "Buckets"}]}
    whole = {"Fn::Join": ["", [f"arn:{partition}:s3:::", joined, tail]]}
    return {"Fn::Split": [",", whole]}


def _with_code(name: str, resource: dict[str, Any]) -> dict[str, Any]:
    if resource["Type"] == "AWS::Lambda::Function":
        place, key = "Code", "CodeKey"
    elif resource["Type"] == "AWS::Lambda::LayerVersion":
        place, (key, _) = "Content", _LAYERS[name]
    else:
        return resource
    code = {"S3Bucket": {"Ref": "CodeBucket"}, "S3Key": {"Ref": key}}
    return {**resource, "Properties": {**resource["Properties"], place: code}}


def _text(template: dict[str, Any]) -> str:
    """Write one line for each resource: indented, it would exceed the limit for templates without a bucket."""
    parts = []
    for name, value in template.items():
        if isinstance(value, dict):
            lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(one)}" for key, one in value.items())
            parts.append(f" {json.dumps(name)}: {{\n{lines}\n }}" if lines else f" {json.dumps(name)}: {{}}")
        else:
            parts.append(f" {json.dumps(name)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(parts) + "\n}\n"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command. Return 0 if the template is written, 1 if osls has made no template yet."""
    parser = argparse.ArgumentParser(prog="python -m deploy.template", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--made", type=Path, default=MADE, help="osls' template (default: %(default)s)")
    parser.add_argument("--output", type=Path, help="the file to write (default: stdout)")
    parser.add_argument("--buckets-parameter", action="store_true", help=f"take the buckets, made for {PLACEHOLDER}")
    given = parser.parse_args(arguments)
    try:
        template = json.loads(given.made.read_text())
    except FileNotFoundError:
        sys.stderr.write(f"there is no {given.made}: run npx serverless package first\n")
        return 1
    text = _text(with_buckets(plain(template)) if given.buckets_parameter else plain(template))
    if (size := len(text.encode())) > INLINE:
        sys.stderr.write(
            f"the template has {size:,} bytes, and CloudFormation takes {INLINE:,} without a bucket: deploy it with"
            " --s3-bucket CODE-BUCKET\n"
        )
    if given.output is None:
        sys.stdout.write(text)
    else:
        given.output.parent.mkdir(parents=True, exist_ok=True)
        given.output.write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
