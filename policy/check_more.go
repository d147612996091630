package policy

import (
	"slices"
	"strconv"
)

func (c *checker) net(n *node, table string, net *Net) {
	if !c.is(n, tableNode, table) {
		return
	}
	for i := range n.fields {
		f := &n.fields[i]
		what := table + "." + f.key
		switch f.key {
		case "allow":
			if c.is(f.val, boolNode, what) {
				net.Allow = &Flag{Value: f.val.text == "true", Origin: c.loc.at(f.val.off)}
			}
		case "connect_tcp":
			net.ConnectTCP = c.ports(f.val, what)
		case "bind_tcp":
			net.BindTCP = c.ports(f.val, what)
		case "unix":
			net.Unix = c.sockets(f.val, what)
		default:
			c.unknown(f, table, "allow", "connect_tcp", "bind_tcp", "unix")
		}
	}
}

// ports reads a list of TCP ports; not nil even when it is empty.
func (c *checker) ports(n *node, what string) []Port {
	ports := []Port{}
	if !c.is(n, arrayNode, what) {
		return ports
	}
	for _, item := range n.items {
		c.count(item.off)
		if !c.is(item, integerNode, "an entry of "+what) {
			continue
		}
		// Base 0 is what TOML has: 0x, 0o, 0b and underscores. A leading
		// zero, which would mean octal here, is no TOML and no JSON.
		number, err := strconv.ParseInt(item.text, 0, 64)
		if err != nil || number < 1 || number > 65535 {
			c.fail(item.off, CodeValue, "port %s is not between 1 and 65535", item.text)
			continue
		}
		ports = append(ports, Port{Number: uint16(number), Origin: c.loc.at(item.off)})
	}
	return ports
}

// sockets reads a list of socket paths.
func (c *checker) sockets(n *node, what string) []Named {
	if !c.is(n, arrayNode, what) {
		return nil
	}
	var names []Named
	for _, item := range n.items {
		if r, ok := c.entry(item, what, false); ok {
			names = append(names, Named{Value: r.Path, Optional: r.Optional, Origin: r.Origin})
		}
	}
	return names
}

func (c *checker) env(n *node, table string, env *Env) {
	if !c.is(n, tableNode, table) {
		return
	}
	for i := range n.fields {
		f := &n.fields[i]
		what := table + "." + f.key
		switch f.key {
		case "mode":
			if mode, ok := c.text(f.val, what, checkEnvMode); ok {
				env.Mode, env.From = EnvMode(mode), c.loc.at(f.val.off)
			}
		case "allow":
			env.Allow = c.names(f.val, what, checkEnvGlob)
		case "set":
			env.Set = c.vars(f.val, what)
		default:
			c.unknown(f, table, "mode", "allow", "set")
		}
	}
}

func (c *checker) vars(n *node, table string) []Var {
	if !c.is(n, tableNode, table) {
		return nil
	}
	var vars []Var
	for i := range n.fields {
		f := &n.fields[i]
		c.count(f.off)
		if err := checkEnvName(f.key); err != nil {
			c.fail(f.off, CodeValue, "%s", err.Error())
			continue
		}
		if value, ok := c.text(f.val, table+"."+f.key, checkEnvValue); ok {
			vars = append(vars, Var{Name: f.key, Value: value, Origin: c.loc.at(f.off)})
		}
	}
	return vars
}

func (c *checker) limits(n *node, table string, l *Limits) {
	if !c.is(n, tableNode, table) {
		return
	}
	all := l.All()
	for i := range n.fields {
		f := &n.fields[i]
		at := slices.IndexFunc(all, func(l Limit) bool { return l.Key == f.key })
		if at < 0 {
			keys := make([]string, len(all))
			for i := range all {
				keys[i] = all[i].Key
			}
			c.unknown(f, table, keys...)
			continue
		}
		if f.val.kind != integerNode && !c.is(f.val, stringNode, table+"."+f.key) {
			continue
		}
		if err := all[at].Parse(f.val.text, c.loc.at(f.val.off)); err != nil {
			c.fail(f.val.off, CodeValue, "bad %s %q: %v", all[at].noun, f.val.text, err)
		}
	}
}
