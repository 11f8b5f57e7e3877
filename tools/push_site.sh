#!/bin/sh
# Put a built site on the branch gh-pages of a repository, as one commit on top of what is there.
# Usage: sh tools/push_site.sh SITE REPOSITORY
# A version that is published may not be missing or changed in the new site: then nothing is pushed.
set -eu

site=$(cd "$1" && pwd)
repository=$2
branch=gh-pages
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

git init --quiet "$work/new"
cd "$work/new"
found=0
git ls-remote --exit-code --heads "$repository" "$branch" >/dev/null || found=$?
case $found in
0)
    git fetch --quiet --depth=1 "$repository" "$branch"
    git checkout --quiet -b "$branch" FETCH_HEAD
    ;;
2) git checkout --quiet --orphan "$branch" ;; # the first publication
*) exit "$found" ;;
esac

for version in v*.*.*/; do
    if [ -d "$version" ] && ! diff -r "$version" "$site/$version" >/dev/null 2>&1; then
        echo "push-site: ${version%/} is published and not the same in $1; nothing was pushed" >&2
        exit 1
    fi
done

find . -mindepth 1 -maxdepth 1 ! -name .git -exec rm -rf {} +
cp -R "$site/." .
git add --all
if git diff --cached --quiet; then
    echo "push-site: nothing has changed"
    exit 0
fi
git commit --quiet --message "Site of ${GITHUB_SHA:-an unnamed commit}"
git push --quiet "$repository" "HEAD:refs/heads/$branch"
echo "push-site: published"
