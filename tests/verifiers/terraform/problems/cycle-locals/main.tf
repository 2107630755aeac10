locals {
  a = local.b + 1
  b = local.c + 1
  c = local.a + 1
}

output "a" {
  value = local.a
}
