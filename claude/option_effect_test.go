package claude_test

type optionEffect struct{ checks map[string]int }

func optionEffects() []optionEffect { return nil }
