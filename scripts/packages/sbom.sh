#!/bin/sh
# Usage: scripts/packages/sbom.sh BINARY FILE TIME
#
# Writes to FILE what BINARY was made of, as CycloneDX, with TIME as the time.
set -eu
cyclonedx-gomod bin -json -noserial -output "$2" "$1"
sed -i "s/\"timestamp\": \"[^\"]*\"/\"timestamp\": \"$3\"/" "$2"
