package claude_test

func sessionEffects() []optionEffect  { return nil }
func settingsEffects() []optionEffect { return nil }
func mcpEffects() []optionEffect      { return nil }
func agentEffects() []optionEffect    { return nil }
