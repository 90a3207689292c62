"""Programs and clients written for Watson Machine Learning Accelerator."""
