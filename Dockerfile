# One image: the server with its embedded engines. All data is in the volume /data.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml requirements.lock requirements-all.lock README.md LICENSE ./
COPY src src
RUN python -m venv /opt/chapterverse \
    && /opt/chapterverse/bin/pip install --no-cache-dir --disable-pip-version-check --require-hashes -r requirements-all.lock \
    && /opt/chapterverse/bin/pip install --no-cache-dir --disable-pip-version-check --no-deps --no-build-isolation .

FROM python:3.11-slim
# The embedded Postgres refuses to run as root and needs an account with a name.
RUN useradd --uid 10001 --user-group --home-dir /data --shell /usr/sbin/nologin chapterverse \
    && install -d -o chapterverse -g chapterverse -m 0700 /data
COPY --from=build /opt/chapterverse /opt/chapterverse
ENV PATH=/opt/chapterverse/bin:$PATH \
    PYTHONDONTWRITEBYTECODE=1 \
    CHAPTERVERSE_HOME=/data
USER 10001
WORKDIR /data
VOLUME /data
EXPOSE 8000
HEALTHCHECK --interval=15s --timeout=3s --start-period=60s --retries=3 \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/livez', timeout=2)"]
ENTRYPOINT ["chapterverse"]
CMD ["serve", "--host", "0.0.0.0"]
