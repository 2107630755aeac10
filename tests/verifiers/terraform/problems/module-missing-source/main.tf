module "queue" {
  source = "./queues"
}

output "queue" {
  value = module.queue.name
}
