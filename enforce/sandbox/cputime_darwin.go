package sandbox

func (c *Command) endInTime() {}
