local hs = { status = "Progressing", message = "Waiting for the operator" }
if obj.spec ~= nil and obj.spec.suspend == true then return { status = "Suspended", message = "suspended" } end
if obj.status == nil or obj.status.observedGeneration ~= obj.metadata.generation then return hs end
for _, c in ipairs(obj.status.conditions or {}) do
  if c.type == "Stalled" and c.status == "True" then return { status = "Degraded", message = c.message } end
  if c.type == "Ready" then
    if c.status == "True" then hs = { status = "Healthy", message = c.message }
    elseif c.reason == "Unmanaged" then return { status = "Suspended", message = c.message }
    else hs.message = c.message end
  end
end
return hs
