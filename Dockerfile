# prony in a container: docker build -t prony . && docker run --rm -v prony:/data prony run quickstart
# Frameworks, data sets and results are kept in the volume /data.
FROM debian:12 AS build
COPY . /prony
WORKDIR /prony
RUN apt-get update && apt-get install -y --no-install-recommends debhelper && tools/package deb

FROM debian:12-slim
COPY --from=build /prony/build/packages/prony_*.deb /tmp/
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates /tmp/prony_*.deb \
	&& rm -rf /tmp/prony_*.deb /var/lib/apt/lists/*
ENV XDG_DATA_HOME=/data XDG_CACHE_HOME=/data/cache
VOLUME /data
WORKDIR /data
ENTRYPOINT ["prony"]
