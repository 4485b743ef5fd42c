"""What happens to a build that is whole: it is compared with the last release, told of, and put where people find it."""
