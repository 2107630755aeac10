variable "region" {
  default = "eu-west-1"
}

output "zone" {
  value = "${var.regoin}-a"
}

output "region" {
  value = var.region
}
