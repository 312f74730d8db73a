-- SPDX-License-Identifier: MIT
-- What "measure" has Lua do: calls, strings, tables, sorting, patterns, coroutines.
do
local function fib(n) return n < 2 and n or fib(n - 1) + fib(n - 2) end
for n = 20, 28 do print(fib(n)) end

local state = 1
local function draw(n)
  state = (state * 1103515245 + 12345) % 2147483648
  return state // 65536 % n
end

local words = {}
for i = 1, 100000 do words[i] = string.format("%x-%d", draw(65536), i) end
table.sort(words)
print(words[1], words[#words])

local sums = {}
for _, word in ipairs(words) do
  local key = word:match("^(%x+)"):sub(1, 2)
  sums[key] = (sums[key] or 0) + #word
end
local keys = {}
for key in pairs(sums) do keys[#keys + 1] = key end
table.sort(keys)
for _, key in ipairs(keys) do io.write(key, "=", sums[key], " ") end
print()

local text = table.concat(words, " ")
print(#text, select(2, text:gsub("%d+", "")))

local producer = coroutine.wrap(function() for i = 1, 300000 do coroutine.yield(i) end end)
local total = 0
for i in producer do total = total + i end
print(total)
end
