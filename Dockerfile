# One small image per program: `docker build --target agents-webhook .`
# Any Rust from the manifest's rust-version on builds it. The tests are run with this one, but with the GNU C library; in
# this image it is musl.
FROM rust:1.95-alpine AS build
RUN apk add --no-cache ca-certificates musl-dev
# Puts the list of crates into each program, where scanners of images find it.
RUN cargo install --locked cargo-auditable@0.7.7
WORKDIR /src
COPY . .
# Each alone: built together, every program would get the features that any other package asks of the crates they share.
RUN cargo auditable build --release --locked --package agents --bin agents \
 && cargo auditable build --release --locked --package agents-webhook --bin agents-webhook \
 && cargo auditable build --release --locked --package agents-sidecar --bin agents-sidecar

FROM scratch AS base
# No shell, no package manager, no root. Whom calls to the outside trust is as new as the image; a mount over it brings others.
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
USER 65532:65532

FROM base AS agents
COPY --from=build /src/target/release/agents /agents
ENTRYPOINT ["/agents"]

FROM base AS agents-webhook
COPY --from=build /src/target/release/agents-webhook /agents-webhook
ENTRYPOINT ["/agents-webhook"]

FROM base AS agents-sidecar
COPY --from=build /src/target/release/agents-sidecar /agents-sidecar
ENTRYPOINT ["/agents-sidecar"]
