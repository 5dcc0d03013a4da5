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

local server = G.server
local function protect(real)
  return setmetatable({}, { __index = real, __newindex = natives.refuse, [mark] = real })
end

G.missing, G.refuse, G.register_function = nil, nil, nil
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

-- The globals of functions: those of scripts without what only EVAL has.
local F, api = {}, {}
for name, value in pairs(G) do
  F[name] = value
end
for name, value in pairs(server) do
  api[name] = value
end
for _, name in pairs({ "replicate_commands", "breakpoint", "debug" }) do
  api[name] = nil
end
F.__redis__err__handler, F.__server__err__handler = nil, nil
F.server = protect(api)
F.redis = F.server

-- While a library is loaded, it sees only what registers functions.
local loading = { register_function = natives.register_function, log = api.log }
for name, value in pairs(api) do
  if name:find("^LOG_") or name:find("VERSION") or name == "SERVER_NAME" then
    loading[name] = value
  end
end
setmetatable(loading, { __index = natives.missing })
local L = { server = protect(loading) }
L.redis = L.server
setmetatable(L, { __index = natives.missing })

local function seal(real)
  local globals = protect(real)
  real._G = globals
  getmetatable(globals).shown = protect({ __index = natives.missing })
  setmetatable(real, { __index = natives.missing })
  return globals
end

-- The environment of libraries. Its `__index` is L during a load and F afterwards.
local library = setmetatable({}, { __newindex = natives.refuse, [mark] = F })
seal(F)
return seal(G), library, F, L
