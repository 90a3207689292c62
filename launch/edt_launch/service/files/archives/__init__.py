"""Archives: unpacking what users send, packing what they fetch."""
