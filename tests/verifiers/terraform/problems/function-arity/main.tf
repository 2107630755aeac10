locals {
  words  = ["a", "b"]
  joined = join("-", local.words)
  length = length(local.words, local.joined)
}

output "length" {
  value = local.length
}
