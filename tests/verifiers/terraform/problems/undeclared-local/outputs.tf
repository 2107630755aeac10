output "count" {
  value = length(local.name)
}

output "first" {
  value = local.firsts
}
