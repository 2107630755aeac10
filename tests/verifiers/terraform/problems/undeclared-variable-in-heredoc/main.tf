variable "host" {
  default = "db"
}

locals {
  config = <<-EOT
    <answer>
    ```
      <server>${var.hostname}</server>
    ```
    </answer>
  EOT
  port   = tonumber("none")
}

output "config" {
  value = local.config
}
