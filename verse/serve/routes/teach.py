"""Learning and asking."""

from __future__ import annotations

import math
from typing import Annotated, Any

from fastapi import APIRouter, File, Form, Header, HTTPException, Request, UploadFile

from verse.serve import schemas
from verse.serve.labels import clean_label
from verse.serve.pictures import AnsweredFrame, Picture
from verse.serve.problems import problems
from verse.serve.service import Service, result

IMAGE = "JPEG, PNG, WebP, BMP, GIF, TIFF, AVIF or MPO"
Upload = Annotated[UploadFile, File(description=IMAGE)]


def router(service: Service) -> APIRouter:
    routes = APIRouter(prefix="/v1")

    @routes.post(
        "/learn",
        response_model=schemas.LearnedDocument,
        responses=problems(404, 409, 422, 507),
        summary="Teach one image",
    )
    async def learn(
        request: Request,
        label: Annotated[str, Form(min_length=1, max_length=400, examples=["mug"])],
        image: Annotated[UploadFile | None, File(description=f"{IMAGE}; or a frame")] = None,
        frame: Annotated[
            str | None,
            Form(
                min_length=1,
                max_length=100,
                description="Instead of an image: the `frame` of a prediction, for one minute.",
                examples=["kQ3vZ1x0b7fT9a2c"],
            ),
        ] = None,
        idempotency_key: Annotated[
            str | None,
            Header(
                min_length=1,
                max_length=200,
                description="A sample with the same key is learned once, even if it is sent again.",
                examples=["0b3c9a6e-9a3f-4b61-8a4e-3f2f6d1c7f10"],
            ),
        ] = None,
    ) -> dict[str, Any]:
        """Learn an image. After status 200 the sample is learned and saved to disk."""
        clean = clean_label(label)
        sample: Picture | AnsweredFrame
        if image is not None and frame is None:
            sample = await service.picture(request, image)
        elif frame is not None and image is None:
            sample = service.frames.get(frame)
        else:
            raise HTTPException(422, "send either an image or a frame")
        learned = await result(service.session.learn(sample, clean, idempotency_key))
        return learned.document()

    @routes.post(
        "/predict",
        response_model=schemas.AnswerDocument,
        responses=problems(422),
        summary="Predict the class of an image",
    )
    async def predict(request: Request, image: Upload) -> dict[str, Any]:
        """Predict with the latest published state; never waits for learning."""
        reply, frame = await service.answer(request, image)
        answer = reply.answer
        shares = sorted(answer.probabilities.items(), key=lambda item: -item[1])
        return {
            "label": answer.label,
            "nearest": answer.nearest,
            "known": answer.known,
            "novelty": answer.novelty if math.isfinite(answer.novelty) else None,
            "confidence": answer.confidence,
            "probabilities": [{"label": label, "p": p} for label, p in shares],
            "step": answer.step,
            "frame": frame,
        }

    return routes
