#!/usr/bin/env bash
# Asks known questions about a project's documentation before and after a change, and shows which the change breaks.
#
# DOCS and QUESTIONS name the folder and the set. BASELINE names a baseline file; without one, the commit that BASE and
# HEAD have in common is checked out and asked first. SUMMARY is where the findings are written, in Markdown.
# INGEST_OPTIONS has further options of `chapterverse ingest`. The exit code is that of `chapterverse check`.
set -euo pipefail

work=$(mktemp -d)
export CHAPTERVERSE_HOME=${CHAPTERVERSE_HOME:-$work/home}
read -r -a options <<< "${INGEST_OPTIONS:-}"
cp "$QUESTIONS" "$work/questions.jsonl"

ingest() { chapterverse ingest "$DOCS" ${options[@]+"${options[@]}"}; }

if [ -n "${BASELINE:-}" ]; then
  cp "$BASELINE" "$work/questions.baseline.json"
else
  head=$(git symbolic-ref --quiet --short HEAD || git rev-parse HEAD)
  if ! common=$(git merge-base "${BASE:?names no commit to compare with}" HEAD); then
    echo "The history of $BASE is not available. Check it out with: fetch-depth: 0" >&2
    exit 2
  fi
  trap 'git checkout --quiet "$head"' EXIT
  git checkout --quiet --detach "$common"
  ingest
  chapterverse check "$work/questions.jsonl" --save
  git checkout --quiet "$head"
  trap - EXIT
fi
ingest
chapterverse check "$work/questions.jsonl" --summary "$SUMMARY"
