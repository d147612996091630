package enforce

// planMacOS fills in the plan for macOS.
func (p *Plan) planMacOS() {}
