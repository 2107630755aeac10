variable "posts" {
  type    = number
  default = 10
}

locals {
  title = "A blog of ${var.posts} posts"
}

output "title" {
  value = local.titel
}

output "posts" {
  value = var.post
}
