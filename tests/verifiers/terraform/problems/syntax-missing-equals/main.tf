output "greeting" {
  value       = "hello"
  description "what to say"
}

output "farewell" {
  value = "bye"
}
