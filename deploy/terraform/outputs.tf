output "outputs" {
  value       = aws_cloudformation_stack.auditor.outputs
  description = "Outputs of the stack: AuditFunction, Reports, Topic and, at fixity, those of queues and ledger"
}
