package claude_test

func agentEffects() []optionEffect { return nil }
