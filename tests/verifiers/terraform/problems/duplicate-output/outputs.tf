output "id" {
  value = 2
}

output "name" {
  value = "one"
}
