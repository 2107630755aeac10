output "size" = {
  value = 1
}

output "more" {
  value = 2
}
