# SPDX-License-Identifier: Apache-2.0
"""Engines in Ray Serve: replicas on the nodes of a cluster, and in front of them what speaks HTTP and asks again when a replica dies.

serve.run(ingot.serving.ray.Deployment("model.ingot", num_replicas=2), name="minilm")
ingot.serving.ray.Client("minilm").infer({"ids": ids})
"""

from __future__ import annotations

import os
from typing import Any

from ray import serve

from ingot.serving.model import Model
from ingot.serving.options import check_options
from ingot.serving.ray_client import Client
from ingot.serving.ray_front import Front
from ingot.serving.ray_replica import Replica

__all__ = ["Client", "Deployment", "Replica"]


def Deployment(  # noqa: N802
    engine_path: str | os.PathLike[str],
    *,
    name: str = "model",
    num_replicas: int | str = 1,
    num_gpus: float = 0,
    num_cpus: float = 1,
    front_replicas: int = 1,
    deployment: dict[str, Any] | None = None,
    **model: Any,
) -> serve.Application:
    """An application for `serve.run`.

    engine_path: on the nodes that run replicas; each maps it. name: of the model, in URLs and metrics. num_gpus, num_cpus: per replica;
    a replica with a GPU runs on the one that Ray assigned to it. front_replicas: processes that speak HTTP. deployment: further options of
    `serve.deployment` for the replicas (`autoscaling_config`, `max_ongoing_requests`, ...). model: options of `ingot.serving.Model`.
    """
    check_options(model, Model)
    options: dict[str, Any] = {
        "max_ongoing_requests": 256,
        "health_check_period_s": 5,
        **(deployment or {}),
        "name": "replicas",
        "num_replicas": num_replicas,
        "ray_actor_options": {
            "num_cpus": num_cpus,
            "num_gpus": num_gpus,
            **(deployment or {}).get("ray_actor_options", {}),
        },
    }
    replicas = serve.deployment(Replica).options(**options).bind(os.fspath(engine_path), name, model)
    front = serve.deployment(Front).options(
        name="front",
        num_replicas=front_replicas,
        max_ongoing_requests=1024,
        ray_actor_options={"num_cpus": 0},
    )
    return front.bind(name, replicas)
