-- Builds the globals of scripts from Lua's own. Runs once for each state, before any script.
--
-- What scripts see of a library is a proxy: an empty table that finds its fields in the real one and refuses changes. Functions
-- that look past metatables know proxies by a key that scripts cannot make.
local G, natives, mark = ...
local getmetatable, setmetatable, pairs, type = getmetatable, setmetatable, pairs, type

for _, name in pairs({ "dofile", "loadfile", "print", "newproxy", "getfenv", "setfenv", "module", "require" }) do
  G[name] = nil
end
for name, value in pairs(natives) do
  G[name] = value
end

local function protect(real)
  return setmetatable({}, { __index = real, __newindex = natives.refuse, [mark] = real })
end

G.missing, G.refuse = nil, nil
for name, value in pairs(G) do
  if type(value) == "table" and name ~= "_G" then
    G[name] = protect(value)
  end
end
G.redis = G.server

local strings = getmetatable("")
strings.__index = G.string
strings[mark] = true
strings.shown = protect({ __index = G.string })

local globals = protect(G)
G._G = globals
getmetatable(globals).shown = protect({ __index = natives.missing })
setmetatable(G, { __index = natives.missing })
return globals
