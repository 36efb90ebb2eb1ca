#!/usr/bin/env bash
# Commit the refreshed GPU transcripts to a branch of their own and open a pull request for it,
# unless one is open already: the force push then refreshes that one. Needs git and gh, signed in.
set -euo pipefail

branch=captures/refresh
title="Refresh the GPU transcripts"

git add -- examples tests
if git diff --cached --quiet; then
  echo "The committed GPU transcripts are those just captured: nothing to propose."
  exit 0
fi

git -c user.name="captures" -c user.email="captures@users.noreply.github.com" \
  commit --quiet --message "$title"
gh auth setup-git
git push --force origin "HEAD:refs/heads/$branch"

if [ "$(gh pr list --head "$branch" --state open --json number --jq length)" = 0 ]; then
  gh pr create --head "$branch" --base main --title "$title" \
    --body "Captured by the publish workflow. The diff is what the examples say now and did not before."
fi
