# The command line in an image, of whichever architecture builds it: docker build --tag s3-auditor .
FROM python:3.13-slim-trixie AS build
RUN pip install --no-cache-dir --disable-pip-version-check uv==0.13.9
WORKDIR /build
ENV UV_PROJECT_ENVIRONMENT=/opt/auditor UV_PYTHON_DOWNLOADS=never
COPY pyproject.toml uv.lock ./
RUN uv sync --quiet --frozen --no-install-project --extra cli --extra crc64 --extra sql
COPY LICENSE /opt/auditor/LICENSE
COPY auditor /opt/auditor/source/auditor
RUN /opt/auditor/bin/python -m compileall -q /opt/auditor/lib /opt/auditor/source

FROM python:3.13-slim-trixie
LABEL org.opencontainers.image.title=s3-auditor org.opencontainers.image.licenses=Apache-2.0
COPY --from=build /opt/auditor /opt/auditor
# Modules come from the image alone, never from the folder that is mounted at /audits.
ENV PYTHONPATH=/opt/auditor/source PYTHONSAFEPATH=1 PYTHONDONTWRITEBYTECODE=1 HOME=/home/auditor
WORKDIR /audits
USER 65532:65532
ENTRYPOINT ["/opt/auditor/bin/python", "-m", "auditor"]
CMD ["--help"]
