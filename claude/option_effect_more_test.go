package claude_test

func mcpEffects() []optionEffect   { return nil }
func agentEffects() []optionEffect { return nil }
