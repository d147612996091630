package supervise

func (c *Command) endInTime() {}
